"""A job whose state needs room: each key holds a value that does not compress, and most records bring a new key.

``python -m tests.recovery.wide_state SETTINGS`` runs or resumes it, as `tests.recovery.driver` does.
"""

from __future__ import annotations

import sys
from collections import Counter
from random import Random
from typing import Any

from headwater.common import Encoder, WatermarkStrategy
from headwater.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from headwater.datastream.connectors.data_generator import DataGeneratorSource
from headwater.datastream.connectors.file_system import FileSink, RollingPolicy
from headwater.datastream.state import ValueStateDescriptor
from headwater.runtime.slot import full_snapshot
from tests.recovery.driver import run

VALUE_BYTES = 500


def key_of(index: int) -> int:
    """Three records in four have a key of their own; the fourth comes back to the one 100 records before it."""
    return index if index % 4 else max(index - 100, 0)


class Remember(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        full_snapshot.MAX_DELTAS = 8  # in the slot: RocksDB writes its memory to files at every eighth checkpoint
        self.seen = runtime_context.get_state(ValueStateDescriptor("seen"))

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Any:
        count, ballast = self.seen.value() or (0, Random(value).randbytes(VALUE_BYTES))
        self.seen.update((count + 1, ballast))
        yield f"{value} {count + 1} {sum(ballast)}"


def build(env: StreamExecutionEnvironment, records: int, output: str) -> None:
    source = env.from_source(DataGeneratorSource(key_of, records), WatermarkStrategy.no_watermarks(), "keys")
    remembered = source.key_by(lambda each: each).process(Remember()).uid("remember")
    remembered.sink_to(
        FileSink.for_row_format(output, Encoder.simple_string_encoder())
        .with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy())
        .build()
    )


def expected(records: int) -> Counter[str]:
    """The output, from a plain loop."""
    counts: Counter[int] = Counter()
    lines: list[str] = []
    for key in map(key_of, range(records)):
        counts[key] += 1
        lines.append(f"{key} {counts[key]} {sum(Random(key).randbytes(VALUE_BYTES))}")
    return Counter(lines)


if __name__ == "__main__":
    run(sys.argv[1], "wide", build)
