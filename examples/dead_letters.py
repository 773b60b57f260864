"""Orders as lines of JSON, some of them damaged: the job goes on, and what it refused is kept with the reason.

A line that is no JSON, an order that a function cannot read and one that the keyed total refuses all end up in one
directory, each once. The program prints the totals, then the dead letters.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from headwater.common import Configuration, Types, WatermarkStrategy
from headwater.common.dead_letter import DeadLetter
from headwater.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from headwater.datastream.connectors.file_system import FileSource, StreamFormat
from headwater.datastream.state import ValueStateDescriptor

LINES = """\
{"customer": "ann", "cents": 1250}
{"customer": "bob", "cents": "free"}
{"customer": "ann", "cents": 990
{"customer": "bob", "cents": 300}
{"customer": "ann", "cents": -100}
{"customer": "ann", "cents": 50}
"""


def with_cents(order: dict) -> tuple[str, int]:
    return order["customer"], int(order["cents"])


class Total(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.total = runtime_context.get_state(ValueStateDescriptor("total", Types.LONG()))

    def process_element(self, value, ctx):
        self.total.update((self.total.value() or 0) + value[1])
        if value[1] < 0:
            raise ValueError("an order cannot be negative")  # its total is as if the order had never come
        yield f"{value[0]} has ordered for {self.total.value() / 100:.2f}"


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        Path(directory, "orders.jsonl").write_text(LINES)
        letters = Path(directory, "dead-letters")
        configuration = Configuration()
        configuration.set_string("headwater.dead-letters.dir", str(letters))
        configuration.set_string("headwater.dead-letters.max-per-minute", "100")

        env = StreamExecutionEnvironment.get_execution_environment(configuration)
        env.set_parallelism(1)
        lines = FileSource.for_record_stream_format(StreamFormat.json_lines_format(), f"{directory}/orders.jsonl")
        orders = env.from_source(lines.build(), WatermarkStrategy.no_watermarks(), "orders")
        orders.map(with_cents).name("with cents").key_by(lambda order: order[0]).process(Total()).name("total").print()
        env.execute("dead letters")

        found = [DeadLetter.from_json(line) for file in letters.glob("part-*") for line in file.open("rb")]
        for letter in sorted(found, key=lambda letter: letter.operator):
            print(f"{letter.operator} ({letter.stage}) refused {letter.record}")


if __name__ == "__main__":
    main()
