"""Interval join: each order with the payments that come within half a minute, and the orders nobody paid for.

    python examples/interval_join.py

Both streams are keyed by the order's number. An order is kept until no payment can come for it any more, by event time;
then, as this is a left outer join, an order that met no payment is handed over alone.
"""

from headwater.common import Duration, Row, Time, Types, WatermarkStrategy
from headwater.common.watermark_strategy import TimestampAssigner
from headwater.datastream import ProcessJoinFunction, StreamExecutionEnvironment

ORDER = Types.ROW_NAMED(["number", "time_ms", "item"], [Types.INT(), Types.LONG(), Types.STRING()])
PAYMENT = Types.ROW_NAMED(["order", "time_ms", "amount"], [Types.INT(), Types.LONG(), Types.DOUBLE()])

ORDERS = [
    Row(1, 10_000, "lamp"),
    Row(2, 12_000, "table"),
    Row(3, 20_000, "chair"),
    Row(4, 30_000, "shelf"),
]

PAYMENTS = [
    Row(2, 15_000, 100.00),
    Row(1, 14_000, 25.00),  # a second late: the watermark allows for two
    Row(2, 42_000, 50.00),  # the last moment for order 2
    Row(3, 51_000, 40.00),  # too late for order 3
    Row(9, 52_000, 5.00),  # there is no order 9
    Row(4, 55_000, 80.00),
]


class TimeOfEvent(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Receipt(ProcessJoinFunction):
    def process_element(self, left, right, ctx: ProcessJoinFunction.Context):
        if right is None:
            yield f"order {left[0]}: {left[2]}, not paid within 30 s"
        else:
            waited_ms = ctx.get_right_timestamp() - ctx.get_left_timestamp()
            yield f"order {left[0]}: {left[2]}, {right[2]:.2f} after {waited_ms // 1000} s"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)

    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(2)).with_timestamp_assigner(
        TimeOfEvent()
    )
    orders = env.from_collection(ORDERS, type_info=ORDER).assign_timestamps_and_watermarks(strategy)
    payments = env.from_collection(PAYMENTS, type_info=PAYMENT).assign_timestamps_and_watermarks(strategy)

    (
        orders.key_by(lambda order: order[0], key_type=Types.INT())
        .interval_join(payments.key_by(lambda payment: payment[0], key_type=Types.INT()))
        .between(Time.seconds(0), Time.seconds(30))
        .left_outer()
        .process(Receipt(), output_type=Types.STRING())
        .print()
    )

    env.execute("interval join")


if __name__ == "__main__":
    main()
