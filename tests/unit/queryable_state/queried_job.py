"""A job in this process with all kinds of keyed state."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from headwater.common import Configuration, Time
from headwater.common.typeinfo import Types
from headwater.common.watermark_strategy import WatermarkStrategy
from headwater.datastream import StreamExecutionEnvironment
from headwater.datastream.connectors.data_generator import DataGeneratorSource
from headwater.datastream.connectors.function_sink import DiscardSink
from headwater.datastream.functions import AggregateFunction, KeyedProcessFunction
from headwater.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from headwater.datastream.window import TumblingEventTimeWindows
from headwater.runtime.job.handle import LocalJobClient

KEYS = 20
RECORDS = 400


class Average(AggregateFunction):
    def create_accumulator(self) -> list[int]:
        return [0, 0]

    def add(self, value: int, accumulator: list[int]) -> list[int]:
        accumulator[0] += value
        accumulator[1] += 1
        return accumulator

    def get_result(self, accumulator: list[int]) -> float:
        return accumulator[0] / accumulator[1]

    def merge(self, a: list[int], b: list[int]) -> list[int]:
        return [a[0] + b[0], a[1] + b[1]]


class Everything(KeyedProcessFunction):
    def open(self, runtime_context: Any) -> None:
        count = ValueStateDescriptor("count", Types.LONG())
        count.set_queryable("counts")
        self.count = runtime_context.get_state(count)
        self.last = runtime_context.get_list_state(ListStateDescriptor("last"))
        self.map = runtime_context.get_map_state(MapStateDescriptor("by parity"))
        self.mean = runtime_context.get_aggregating_state(AggregatingStateDescriptor("mean", Average()))
        gone = ValueStateDescriptor("gone")
        gone.enable_time_to_live(StateTtlConfig.new_builder(Time.milliseconds(1)).build())
        self.gone = runtime_context.get_state(gone)

    def process_element(self, value: int, ctx: Any) -> Any:
        self.count.update((self.count.value() or 0) + 1)
        self.last.update([*self.last.get(), value][-3:])
        self.map.put("even" if value // KEYS % 2 == 0 else "odd", value)
        self.mean.add(value)
        if value < KEYS:
            self.gone.update(value)
        yield value


def key_of(number: int) -> str:
    return f"key-{number % KEYS:02d}"


def start(folder: Path, backend: str = "heap", rate: int | None = None) -> LocalJobClient:
    """Start the job, which reads `RECORDS` numbers and then waits; with `rate` it goes on for ever."""
    settings = {
        "headwater.master": "in-process",
        "headwater.state.dir": str(folder / "state"),
        "execution.checkpointing.dir": str(folder / "job"),
        "state.backend.type": backend,
        "restart-strategy.type": "none",
        "execution.checkpointing.interval": "50 ms",
    }
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
    env.set_parallelism(2)
    source = DataGeneratorSource(int, None, rate_per_second=rate or 2000)
    watermarks = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda number, _: number)
    numbers = env.from_source(source, watermarks, "numbers").uid("numbers")
    keyed = numbers.filter(lambda number: rate is not None or number < RECORDS).uid("some").key_by(key_of)
    keyed.process(Everything()).name("everything").uid("all").sink_to(DiscardSink()).uid("s1")
    windows = keyed.window(TumblingEventTimeWindows.of(Time.days(1))).aggregate(Average())
    windows.name("windows").uid("windows").sink_to(DiscardSink()).uid("s2")
    keyed.as_queryable_state("newest").uid("newest")
    client = env.execute_async("queried")
    assert isinstance(client, LocalJobClient)
    return client
