"""Payments per customer, version 2 of the job that docs/operations.md operates: refunds are subtracted.

    headwater shadow --from SAVEPOINT --against examples/operate/payments_v1.py \
        examples/operate/payments_v2.py payments/out

A customer whose total was wrong already stays wrong by that much: the page shows how to repair one.
"""

import sys

from headwater.common import Encoder, WatermarkStrategy
from headwater.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from headwater.datastream.connectors.data_generator import DataGeneratorSource
from headwater.datastream.connectors.file_system import FileSink, RollingPolicy
from headwater.datastream.state import ValueStateDescriptor


def payment(index):
    customer = f"customer-{index * 7919 % 1000:03d}"
    cents = index * 104_729 % 10_000
    return customer, -cents if index % 10 == 3 else cents


class Totals(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.total = runtime_context.get_state(ValueStateDescriptor("total"))

    def process_element(self, value, ctx: KeyedProcessFunction.Context):
        customer, cents = value
        total = (self.total.value() or 0) + cents
        self.total.update(total)
        yield f"{customer},{total}"


def main(folder):
    env = StreamExecutionEnvironment.get_execution_environment()
    source = DataGeneratorSource(payment, rate_per_second=2_000)
    payments = env.from_source(source, WatermarkStrategy.no_watermarks(), "payments").uid("payments")
    totals = payments.key_by(lambda each: each[0]).process(Totals()).uid("totals")
    totals.sink_to(
        FileSink.for_row_format(folder, Encoder.simple_string_encoder())
        .with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy())
        .build()
    ).uid("files")
    env.execute("payments")


if __name__ == "__main__":
    main(sys.argv[1])
