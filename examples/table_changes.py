"""Changes of a table, as Debezium tells them, kept as its newest state: rows with row kinds.

Each line is one message: a product was created (c), changed (u) or deleted (d). An update is two rows, the one before
and the one after. The job keeps the newest price of each product and prints what each change makes of it.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from headwater.common import Row, RowKind, Types, WatermarkStrategy
from headwater.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from headwater.datastream.connectors.file_system import FileSource, StreamFormat
from headwater.datastream.formats.changelog_json import DebeziumJsonDeserializationSchema
from headwater.datastream.state import ValueStateDescriptor

MESSAGES = """\
{"op": "c", "before": null, "after": {"id": 1, "name": "scooter", "price": 80.5}}
{"op": "c", "before": null, "after": {"id": 2, "name": "helmet", "price": 20}}
{"op": "u", "before": {"id": 1, "name": "scooter", "price": 80.5}, "after": {"id": 1, "name": "scooter", "price": 75}}
{"op": "d", "before": {"id": 2, "name": "helmet", "price": 20}, "after": null}
"""

PRODUCT = Types.ROW_NAMED(["id", "name", "price"], [Types.INT(), Types.STRING(), Types.BIG_DEC()])


class Newest(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.price = runtime_context.get_state(ValueStateDescriptor("price", Types.BIG_DEC()))

    def process_element(self, value: Row, ctx: KeyedProcessFunction.Context):
        kind = value.get_row_kind()
        if kind is RowKind.DELETE:
            self.price.clear()
            yield f"{value.name}: gone"
        elif kind in (RowKind.INSERT, RowKind.UPDATE_AFTER):
            before = self.price.value()
            self.price.update(value.price)
            yield f"{value.name}: {value.price}" if before is None else f"{value.name}: {value.price}, was {before}"


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        Path(directory, "products.jsonl").write_text(MESSAGES)
        env = StreamExecutionEnvironment.get_execution_environment()
        env.set_parallelism(1)
        changes = StreamFormat.schema_lines_format(DebeziumJsonDeserializationSchema(PRODUCT))
        source = FileSource.for_record_stream_format(changes, f"{directory}/products.jsonl").build()
        stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "products")
        stream.key_by(lambda row: row.id).process(Newest()).print()
        env.execute("table changes")


if __name__ == "__main__":
    main()
