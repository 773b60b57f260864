"""A job whose state shows where it comes from: each value has a number that no other attempt would draw.

The value of a key is `[n, drawn, n]`: the number of its records, and a random number. If an attempt is undone and its
records are processed again, `n` comes again, but with another random number. So whoever has seen one and the same `n`
of a key with two random numbers has seen a value that was never committed; and `[n, drawn, m]` is a torn one.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from headwater.common import WatermarkStrategy
from headwater.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from headwater.datastream.connectors.data_generator import DataGeneratorSource
from headwater.datastream.connectors.function_sink import DiscardSink
from headwater.datastream.state import MapStateDescriptor, ValueStateDescriptor
from headwater.state.heap.store import HeapStore

KEYS = 64
OPERATOR = "count"


SABOTAGE = "STATE_SABOTAGE"
"""Environment variable: if it is set, slots take what they have now for what is committed."""


class Count(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        if SABOTAGE in os.environ:
            HeapStore.durable = lambda self, key, epoch: self.current(key)  # type: ignore[method-assign]
        value = ValueStateDescriptor("value")
        value.set_queryable("counts")
        self.value = runtime_context.get_state(value)
        self.map = runtime_context.get_map_state(MapStateDescriptor("map"))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        count = (self.value.value() or [0])[0] + 1
        drawn = int.from_bytes(os.urandom(6), "little")
        self.value.update([count, drawn, count])
        self.map.put("first", count)
        self.map.put("drawn", drawn)
        self.map.put("last", count)
        yield value


def key_of(index: int) -> str:
    return f"key-{index % KEYS:02d}"


def main(rate: int) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    source = DataGeneratorSource(key_of, rate_per_second=rate)
    records = env.from_source(source, WatermarkStrategy.no_watermarks(), "records").uid("records")
    records.key_by(lambda key: key).process(Count()).uid(OPERATOR).sink_to(DiscardSink()).uid("nowhere")
    env.execute("queried")


if __name__ == "__main__":
    main(int(sys.argv[1]))
