"""A job whose input comes slowly, in a burst, and slowly again, as the test writes it: so `auto` changes engines.

``python -m tests.recovery.bursts SETTINGS`` runs or resumes the job, as `tests.recovery.driver` does.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any

from headwater.common import Encoder, WatermarkStrategy
from headwater.common.connector import Split, SplitReader
from headwater.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from headwater.datastream.connectors.file_system import FileSink, RollingPolicy
from headwater.datastream.state import ValueStateDescriptor
from tests.recovery import engines_used, kills, sabotage
from tests.recovery.driver import run
from tests.spark.tail_source import TailReader, TailSource, append

KEYS = 31
GROUPS = 5
EOF = "EOF"

sabotage.install()
kills.install()


class EndingReader(TailReader):
    """The line `EOF` ends the split."""

    def read_batch(self, max_records: int) -> list[str] | None:  # type: ignore[override]
        lines = super().read_batch(max_records)
        if lines and lines[-1] == EOF:
            lines.pop()
            self._file.seek(-len(EOF) - 1, 1)  # the next call finds it again
            return lines or None
        return lines


class EndingTail(TailSource):
    bounded = True
    discovery_interval_ms = None  # type: ignore[assignment]

    def open_reader(self, split: Split, position: Any | None) -> SplitReader:
        return EndingReader(f"{self.directory}/{split.split_id}", position or 0)


class Number(KeyedProcessFunction):
    """Numbers what it sees of a key: what is lost or applied twice shows in every line after it."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        number = (self.count.value() or 0) + 1
        self.count.update(number)
        yield value
        yield "number", ctx.get_current_key(), number


def group_of(line: Any) -> int:
    return int(line[1]) % GROUPS


def input_file(output: str | Path) -> Path:
    return Path(output).parent / "input" / "lines"


def build(env: StreamExecutionEnvironment, records: int, output: str) -> None:
    engines_used.install()
    source = EndingTail(input_file(output).parent)
    lines = env.from_source(source, WatermarkStrategy.no_watermarks(), "lines").map(lambda line: ("line", int(line)))
    numbered = lines.key_by(lambda line: line[1] % KEYS).process(Number()).uid("by-key")
    again = numbered.key_by(group_of).process(Number()).uid("by-group")
    again.map(repr).sink_to(
        FileSink.for_row_format(output, Encoder.simple_string_encoder())
        .with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy())
        .build()
    )


def expected(records: int) -> Counter[str]:
    """The output, from a plain loop."""
    lines: list[Any] = []
    numbers: Counter[int] = Counter()
    for index in range(records):
        key = index % KEYS
        numbers[key] += 1
        lines += [("line", index), ("number", key, numbers[key])]
    groups = Counter(map(group_of, lines))
    lines += [("number", group, number + 1) for group, count in groups.items() for number in range(count)]
    return Counter(map(repr, lines))


class Feeder:
    """Writes the job's input: numbers from zero on."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.fed = 0
        file.parent.mkdir(parents=True)
        file.touch()

    def feed(self, count: int) -> None:
        append(self.file, *range(self.fed, self.fed + count))
        self.fed += count

    def end(self) -> None:
        append(self.file, EOF)


if __name__ == "__main__":
    # Not as `__main__`: slots and workers must import this module, which installs the faults.
    from tests.recovery import bursts

    run(sys.argv[1], "bursts", bursts.build)
