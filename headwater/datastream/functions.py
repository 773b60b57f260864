"""The functions that users implement, and what they are handed, under PyFlink's path."""

from headwater.operators.functions import (
    AggregateFunction,
    CheckpointedFunction,
    FilterFunction,
    FlatMapFunction,
    Function,
    FunctionInitializationContext,
    KeyedProcessFunction,
    KeySelector,
    MapFunction,
    Partitioner,
    ProcessFunction,
    ReduceFunction,
    SinkFunction,
    SourceFunction,
)
from headwater.operators.runtime_context import RuntimeContext

__all__ = [
    "AggregateFunction",
    "CheckpointedFunction",
    "FilterFunction",
    "FlatMapFunction",
    "Function",
    "FunctionInitializationContext",
    "KeySelector",
    "KeyedProcessFunction",
    "MapFunction",
    "Partitioner",
    "ProcessFunction",
    "ReduceFunction",
    "RuntimeContext",
    "SinkFunction",
    "SourceFunction",
]
