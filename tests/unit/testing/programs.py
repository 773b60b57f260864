"""Programs as users write them, and what they give."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from headwater.common import WatermarkStrategy
from headwater.common.connector import Sink, Source
from headwater.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from headwater.datastream.connectors.data_generator import DataGeneratorSource
from headwater.datastream.state import ValueStateDescriptor

WORDS = ("rain", "river", "sea")


class Count(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))

    def process_element(self, value: str, ctx: KeyedProcessFunction.Context) -> Any:
        self.count.update((self.count.value() or 0) + 1)
        yield ctx.get_current_key(), self.count.value()


def count_words(sink: Sink, source: Source | None = None, parallelism: int = 2) -> StreamExecutionEnvironment:
    """The README's program, up to `execute()`."""
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(parallelism)
    words = source or DataGeneratorSource(lambda i: WORDS[i % 3], count=24, rate_per_second=4)
    stream = env.from_source(words, WatermarkStrategy.no_watermarks(), "words")
    stream.key_by(lambda word: word).process(Count()).name("count").uid("count").sink_to(sink).name("out")
    return env


def counted(words: Iterable[str] = WORDS * 8) -> list[tuple[str, int]]:
    seen: dict[str, int] = {}
    found = []
    for word in words:
        seen[word] = seen.get(word, 0) + 1
        found.append((word, seen[word]))
    return found
