"""Orders to a Delta table, exactly once; then the table's history, and what comes after it, in one stream.

Needs `pip install 'headwater[delta]'`.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from headwater.common import Types, WatermarkStrategy
from headwater.datastream import StreamExecutionEnvironment
from headwater.datastream.connectors.delta import DeltaSink, DeltaSource
from headwater.datastream.connectors.file_system import FileSource, StreamFormat
from headwater.datastream.connectors.hybrid_source import HybridSource

ORDER = Types.ROW_NAMED(["customer", "amount"], [Types.STRING(), Types.LONG()])
HISTORY = [("ann", 5), ("bob", 7), ("ann", 1), ("eve", 4)]


def fill(table: str) -> None:
    """Four orders, partitioned by customer."""
    env = StreamExecutionEnvironment.get_execution_environment()
    orders = env.from_collection([{"customer": name, "amount": amount} for name, amount in HISTORY])
    orders.sink_to(DeltaSink.for_table(table).set_schema(ORDER).partition_by("customer").build())
    env.execute("fill the table")


def totals(table: str, new_orders: str) -> dict[str, int]:
    """The table first, then the files."""
    env = StreamExecutionEnvironment.get_execution_environment()
    new = FileSource.for_record_stream_format(StreamFormat.json_lines_format(), new_orders).build()
    source = HybridSource.builder(DeltaSource.for_table(table).build()).add_source(new).build()
    orders = env.from_source(source, WatermarkStrategy.no_watermarks(), "orders")
    amounts = orders.map(lambda order: (order["customer"], order["amount"]))
    latest: dict[str, int] = {}
    with amounts.key_by(lambda pair: pair[0]).sum(1).execute_and_collect() as results:
        for customer, total in results:
            latest[customer] = max(total, latest.get(customer, 0))
    return latest


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        table, new_orders = f"{directory}/orders", Path(directory, "new.jsonl")
        fill(table)
        new_orders.write_text('{"customer": "bob", "amount": 3}\n{"customer": "zoe", "amount": 9}\n')
        for customer, total in sorted(totals(table, str(new_orders)).items()):
            print(customer, total)


if __name__ == "__main__":
    main()
