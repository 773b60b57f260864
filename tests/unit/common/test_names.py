"""The names of pyflink.common are there, so that replacing `pyflink` by `headwater` in imports is enough."""

from __future__ import annotations

import importlib

import pytest

PYFLINK_COMMON = (
    "Configuration ConfigOption ConfigOptions ExecutionConfig TypeInformation TypeSerializer Types SerializationSchema "
    "DeserializationSchema SimpleStringSchema ByteArraySchema Encoder CompletableFuture InputDependencyConstraint "
    "JobClient JobExecutionResult JobID JobStatus RestartStrategies RestartStrategyConfiguration Row RowKind "
    "WatermarkStrategy Duration Instant Time AssignerWithPeriodicWatermarksWrapper"
)

MODULES = {
    "typeinfo": "Types TypeInformation RowTypeInfo TupleTypeInfo BasicTypeInfo BasicType MapTypeInfo ListTypeInfo "
    "PrimitiveArrayTypeInfo BasicArrayTypeInfo ObjectArrayTypeInfo PickledBytesTypeInfo SqlTimeTypeInfo DateTypeInfo "
    "TimeTypeInfo TimestampTypeInfo LocalTimeTypeInfo InstantTypeInfo ExternalTypeInfo",
    "types": "Row RowKind",
    "time": "Duration Instant Time",
    "watermark_strategy": "WatermarkStrategy TimestampAssigner",
    "serialization": "SerializationSchema DeserializationSchema SimpleStringSchema ByteArraySchema Encoder "
    "BulkWriterFactory RowFieldExtractorSchema",
    "constants": "MAX_LONG_VALUE MIN_LONG_VALUE DEFAULT_OUTPUT_TAG",
    "restart_strategy": "RestartStrategies RestartStrategyConfiguration",
}


def test_the_package() -> None:
    package = importlib.import_module("headwater.common")
    assert [name for name in PYFLINK_COMMON.split() if not hasattr(package, name)] == []


@pytest.mark.parametrize("module", MODULES)
def test_the_modules(module: str) -> None:
    found = importlib.import_module(f"headwater.common.{module}")
    assert [name for name in MODULES[module].split() if not hasattr(found, name)] == []
