"""Orders per customer, version 2: prices have cents, customers have a level, and the last order is an object.

    headwater savepoint diff orders-job examples/evolve_state/orders_v2.py orders
    headwater run -c orders-job examples/evolve_state/orders_v2.py orders

`Account` changes in ways that need no help: a field is wider, one is new and has a default, the order is another. Of
the last order version 1 stored a text: `migrate_with` says how to make an object of it.
"""

import sys
from dataclasses import dataclass

from headwater.common import Duration, WatermarkStrategy
from headwater.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from headwater.datastream.connectors.file_system import FileSource, StreamFormat
from headwater.datastream.state import ValueStateDescriptor


@dataclass
class Account:
    total: float
    orders: int
    level: str = "basic"


@dataclass
class Order:
    item: str
    price: float


def order_from_text(text):
    item, price = text.split(" for ")
    return Order(item, float(price))


class Accounts(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.account = runtime_context.get_state(ValueStateDescriptor("account"))
        self.last = runtime_context.get_state(
            ValueStateDescriptor("last order").migrate_with(order_from_text, to_version=2)
        )

    def process_element(self, value, ctx: KeyedProcessFunction.Context):
        customer, item, price = value.split(",")
        account = self.account.value() or Account(0.0, 0)
        account.orders += 1
        account.total += float(price)
        if account.total >= 10:
            account.level = "gold"
        before = self.last.value()
        self.account.update(account)
        self.last.update(Order(item, float(price)))
        yield f"{customer} ({account.level}): {account.orders} orders, {account.total:.2f} in all; before: {before}"


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
