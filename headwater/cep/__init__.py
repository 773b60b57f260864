"""Complex event processing: patterns of events in a stream. Names and meaning as in Flink's CEP library for Java."""

from headwater.cep.cep import CEP
from headwater.cep.pattern import GroupPattern, Pattern
from headwater.cep.pattern_data import (
    pattern_from_data,
    pattern_from_json,
    pattern_from_yaml,
    pattern_to_data,
    pattern_to_json,
)
from headwater.cep.pattern_stream import PatternStream
from headwater.cep.within_type import WithinType
from headwater.operators.cep.conditions import IterativeCondition, SimpleCondition
from headwater.operators.cep.functions import (
    PatternFlatSelectFunction,
    PatternProcessFunction,
    PatternSelectFunction,
    PatternTimeoutFunction,
)
from headwater.operators.cep.skip import AfterMatchSkipStrategy

__all__ = [
    "CEP",
    "AfterMatchSkipStrategy",
    "GroupPattern",
    "IterativeCondition",
    "Pattern",
    "PatternFlatSelectFunction",
    "PatternProcessFunction",
    "PatternSelectFunction",
    "PatternStream",
    "PatternTimeoutFunction",
    "SimpleCondition",
    "WithinType",
    "pattern_from_data",
    "pattern_from_json",
    "pattern_from_yaml",
    "pattern_to_data",
    "pattern_to_json",
]
