"""Module paths as in PyFlink. `tests/parity/test_api.py` compares all names and signatures."""

from __future__ import annotations

import importlib

import pytest


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
