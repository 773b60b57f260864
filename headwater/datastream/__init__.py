"""What people type, with the names of pyflink.datastream."""

from headwater.datastream.checkpoint_config import CheckpointConfig
from headwater.datastream.checkpointing_mode import CheckpointingMode
from headwater.datastream.data_stream import CloseableIterator, DataStream, DataStreamSink, KeyedStream
from headwater.datastream.execution_mode import RuntimeExecutionMode
from headwater.datastream.externalized_checkpoint_retention import ExternalizedCheckpointRetention
from headwater.datastream.functions import (
    AggregateFunction,
    CheckpointedFunction,
    FilterFunction,
    FlatMapFunction,
    Function,
    KeyedProcessFunction,
    KeySelector,
    MapFunction,
    Partitioner,
    ProcessFunction,
    ReduceFunction,
    RuntimeContext,
    SinkFunction,
    SourceFunction,
)
from headwater.datastream.output_tag import OutputTag
from headwater.datastream.stream_execution_environment import StreamExecutionEnvironment
from headwater.datastream.time_domain import TimeDomain
from headwater.datastream.timerservice import TimerService

__all__ = [
    "AggregateFunction",
    "CheckpointConfig",
    "CheckpointedFunction",
    "CheckpointingMode",
    "CloseableIterator",
    "DataStream",
    "DataStreamSink",
    "ExternalizedCheckpointRetention",
    "FilterFunction",
    "FlatMapFunction",
    "Function",
    "KeySelector",
    "KeyedProcessFunction",
    "KeyedStream",
    "MapFunction",
    "OutputTag",
    "Partitioner",
    "ProcessFunction",
    "ReduceFunction",
    "RuntimeContext",
    "RuntimeExecutionMode",
    "SinkFunction",
    "SourceFunction",
    "StreamExecutionEnvironment",
    "TimeDomain",
    "TimerService",
]
