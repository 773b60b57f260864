"""Orders per customer, version 1 of a program whose state grows with the business; version 2 is beside it.

    headwater run -c orders-job examples/evolve_state/orders_v1.py orders

Reads files of lines like `ann,tea,3` from the folder for as long as it runs. docs/evolution.md goes on from here.
"""

import sys
from dataclasses import dataclass

from headwater.common import Duration, WatermarkStrategy
from headwater.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from headwater.datastream.connectors.file_system import FileSource, StreamFormat
from headwater.datastream.state import ValueStateDescriptor


@dataclass
class Account:
    orders: int
    total: int


class Accounts(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.account = runtime_context.get_state(ValueStateDescriptor("account"))
        self.last = runtime_context.get_state(ValueStateDescriptor("last order"))

    def process_element(self, value, ctx: KeyedProcessFunction.Context):
        customer, item, price = value.split(",")
        account = self.account.value() or Account(0, 0)
        account.orders += 1
        account.total += int(price)
        before = self.last.value() or "nothing"
        self.account.update(account)
        self.last.update(f"{item} for {price}")
        yield f"{customer}: {account.orders} orders, {account.total} in all; before this one: {before}"


def main(folder):
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    source = (
        FileSource.for_record_stream_format(StreamFormat.text_line_format(), folder)
        .monitor_continuously(Duration.of_seconds(1))
        .build()
    )
    lines = env.from_source(source, WatermarkStrategy.no_watermarks(), "orders").uid("orders")
    lines.key_by(lambda line: line.split(",")[0]).process(Accounts()).uid("accounts").print().uid("print")
    env.execute("orders per customer")


if __name__ == "__main__":
    main(sys.argv[1])
