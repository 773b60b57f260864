"""Rows, types, durations, configuration, errors: shared by all, with the names of pyflink.common."""

from headwater.common.completable_future import CompletableFuture
from headwater.common.config_options import ConfigOption, ConfigOptions
from headwater.common.configuration import Configuration
from headwater.common.execution_config import ExecutionConfig
from headwater.common.input_dependency_constraint import InputDependencyConstraint
from headwater.common.job_client import JobClient
from headwater.common.job_execution_result import JobExecutionResult
from headwater.common.job_id import JobID
from headwater.common.job_status import JobStatus
from headwater.common.restart_strategy import RestartStrategies, RestartStrategyConfiguration
from headwater.common.serialization import (
    ByteArraySchema,
    DeserializationSchema,
    Encoder,
    SerializationSchema,
    SimpleStringSchema,
)
from headwater.common.serializer import TypeSerializer
from headwater.common.time import Duration, Instant, Time
from headwater.common.typeinfo import TypeInformation, Types
from headwater.common.types import Row, RowKind
from headwater.common.watermark_strategy import (
    AssignerWithPeriodicWatermarksWrapper,
    TimestampAssigner,
    WatermarkGenerator,
    WatermarkOutput,
    WatermarkStrategy,
)

__all__ = [
    "AssignerWithPeriodicWatermarksWrapper",
    "ByteArraySchema",
    "CompletableFuture",
    "ConfigOption",
    "ConfigOptions",
    "Configuration",
    "DeserializationSchema",
    "Duration",
    "Encoder",
    "ExecutionConfig",
    "InputDependencyConstraint",
    "Instant",
    "JobClient",
    "JobExecutionResult",
    "JobID",
    "JobStatus",
    "RestartStrategies",
    "RestartStrategyConfiguration",
    "Row",
    "RowKind",
    "SerializationSchema",
    "SimpleStringSchema",
    "Time",
    "TimestampAssigner",
    "TypeInformation",
    "TypeSerializer",
    "Types",
    "WatermarkGenerator",
    "WatermarkOutput",
    "WatermarkStrategy",
]
