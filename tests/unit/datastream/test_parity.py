"""Signatures as in PyFlink 2.3: `pyflink_signatures.txt` has its public methods, one per line."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path

import pytest

from headwater import datastream

NOT_YET = {
    "DataStream.cache": "cached streams come with their own issue",
    "KeyedStream.cache": "never in PyFlink either: it raises",
    "StreamExecutionEnvironment.create_input": "input formats are Java classes",
    "StreamExecutionEnvironment.register_cached_file": "files go to tasks with add_python_archive",
    "StreamExecutionEnvironment.set_default_savepoint_directory": "savepoints come with their own issue",
    "StreamExecutionEnvironment.get_default_savepoint_directory": "savepoints come with their own issue",
    "StreamExecutionEnvironment.is_changelog_state_backend_enabled": "there is no such backend to enable",
    "StreamExecutionEnvironment.get_buffer_timeout": "there are no buffers",
    "StreamExecutionEnvironment.is_chaining_of_operators_with_different_max_parallelism_enabled": "one number per job",
}
DIFFERENT = {
    "StreamExecutionEnvironment.execute_async": "without a name the job has the configuration's, not one of Flink's",
    "KeyedStream.broadcast": "refused on keyed streams, as in PyFlink",
}


def signatures() -> list[tuple[str, str, list[str]]]:
    text = Path(__file__).with_name("pyflink_signatures.txt").read_text()
    found = re.findall(r"^(\w+)\.(\w+)\((.*)\)$", text, re.MULTILINE)
    assert len(found) > 140
    return [(cls, method, parameters.split(", ") if parameters else []) for cls, method, parameters in found]


def shown(parameter: inspect.Parameter) -> str:
    name = f"*{parameter.name}" if parameter.kind is parameter.VAR_POSITIONAL else parameter.name
    return name if parameter.default is parameter.empty else f"{name}={parameter.default!r}"


@pytest.mark.parametrize(("cls", "method", "expected"), signatures(), ids=lambda item: str(item))
def test_signature(cls, method, expected):
    full_name = f"{cls}.{method}"
    found = inspect.getattr_static(getattr(datastream, cls), method, None)
    if full_name in NOT_YET:
        assert found is None, f"{full_name} is there now: take it off the list"
        return
    assert found is not None, f"{full_name} is missing"
    if full_name not in DIFFERENT:
        function = found.__func__ if isinstance(found, staticmethod) else found
        ours = [shown(item) for name, item in inspect.signature(function).parameters.items() if name != "self"]
        assert ours[: len(expected)] == expected
        assert all("=" in extra for extra in ours[len(expected) :]), "more parameters than PyFlink need defaults"


@pytest.mark.parametrize(
    ("module", "names"),
    [
        ("functions", "MapFunction FlatMapFunction FilterFunction ReduceFunction AggregateFunction KeySelector"),
        ("functions", "ProcessFunction KeyedProcessFunction Partitioner SinkFunction SourceFunction RuntimeContext"),
        ("state", "ValueStateDescriptor ListStateDescriptor MapStateDescriptor ReducingStateDescriptor StateTtlConfig"),
        ("state", "AggregatingStateDescriptor ValueState ListState MapState ReducingState AggregatingState"),
        ("data_stream", "DataStream KeyedStream DataStreamSink CloseableIterator"),
        ("stream_execution_environment", "StreamExecutionEnvironment"),
        ("output_tag", "OutputTag"),
        ("functions", "WindowFunction AllWindowFunction ProcessWindowFunction ProcessAllWindowFunction"),
        ("functions", "KeyedStateStore"),
        ("data_stream", "WindowedStream AllWindowedStream"),
        ("window", "Window TimeWindow CountWindow GlobalWindow WindowAssigner MergingWindowAssigner GlobalWindows"),
        ("window", "TumblingProcessingTimeWindows TumblingEventTimeWindows SlidingProcessingTimeWindows"),
        ("window", "SlidingEventTimeWindows ProcessingTimeSessionWindows EventTimeSessionWindows"),
        ("window", "DynamicProcessingTimeSessionWindows DynamicEventTimeSessionWindows CountTumblingWindowAssigner"),
        ("window", "CountSlidingWindowAssigner TriggerResult Trigger EventTimeTrigger ProcessingTimeTrigger"),
        ("window", "ContinuousEventTimeTrigger ContinuousProcessingTimeTrigger NeverTrigger PurgingTrigger"),
        ("window", "CountTrigger"),
        ("window", "TimeWindowSerializer CountWindowSerializer GlobalWindowSerializer SessionWindowTimeGapExtractor"),
        ("time_domain", "TimeDomain"),
        ("timerservice", "TimerService"),
        ("checkpoint_config", "CheckpointConfig"),
        ("checkpointing_mode", "CheckpointingMode"),
        ("externalized_checkpoint_retention", "ExternalizedCheckpointRetention"),
        ("execution_mode", "RuntimeExecutionMode"),
    ],
)
def test_module_paths(module, names):
    found = importlib.import_module(f"headwater.datastream.{module}")
    assert all(hasattr(found, name) for name in names.split())


def test_the_api_imports_neither_spark_nor_the_runtime():
    import subprocess
    import sys

    code = (
        "import sys, headwater.datastream; "
        "print([m for m in sys.modules if m.startswith(('pyspark', 'headwater.runtime'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
