"""Batches of seven over all records: operator list state, which belongs to no key, and a counter outside of state."""

from __future__ import annotations

from collections import Counter
from typing import Any

from headwater.datastream import (
    CheckpointedFunction,
    DataStream,
    ProcessFunction,
    StreamExecutionEnvironment,
)
from headwater.datastream.functions import FunctionInitializationContext
from headwater.datastream.state import ListStateDescriptor
from tests.golden.jobs.golden_job import GoldenJob

SIZE = 7
NUMBERS = list(range(SIZE * 200))


class Batches(ProcessFunction, CheckpointedFunction):
    def initialize_state(self, context: FunctionInitializationContext) -> None:
        self.waiting = context.get_operator_list_state(ListStateDescriptor("waiting"))
        self.made_state = context.get_operator_list_state(ListStateDescriptor("made"))
        self.made = next(iter(self.made_state.get()), 0)

    def snapshot_state(self, context: FunctionInitializationContext) -> None:
        self.made_state.update([self.made])

    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Any:
        self.waiting.add(value)
        held = list(self.waiting.get())
        if len(held) == SIZE:
            yield self.made, tuple(held)
            self.made += 1
            self.waiting.clear()


def build(env: StreamExecutionEnvironment) -> DataStream:
    return env.from_collection(NUMBERS).global_().process(Batches())


def expected() -> Counter[Any]:
    return Counter((number, tuple(NUMBERS[number * SIZE : (number + 1) * SIZE])) for number in range(200))


BATCHES = GoldenJob("batches", build, expected, epoch_records=150)
