"""Fraud alert: a small payment, and within a minute a large one with the same card. A timer forgets the small one.

    python examples/fraud_alert.py

The flag of a card is one value of state. It is set by a small payment and cleared by whatever comes first: the next
payment, or the timer one minute of event time later.
"""

from headwater.common import Row, Types, WatermarkStrategy
from headwater.common.watermark_strategy import TimestampAssigner, WatermarkGenerator
from headwater.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from headwater.datastream.state import ValueStateDescriptor

MINUTE_MS = 60_000
SMALL = 1.00
LARGE = 500.00

PAYMENT = Types.ROW_NAMED(["card", "time_ms", "amount"], [Types.STRING(), Types.LONG(), Types.DOUBLE()])

PAYMENTS = [
    Row("1234", 0, 0.50),
    Row("5678", 5_000, 0.90),
    Row("1234", 20_000, 700.00),  # alert: 20 s after 0.50
    Row("9012", 30_000, 900.00),  # no small payment before it
    Row("5678", 40_000, 12.00),  # an ordinary payment in between
    Row("5678", 50_000, 800.00),  # so no alert
    Row("9012", 60_000, 0.10),
    Row("5678", 125_000, 30.00),  # with it event time passes 120 s, and the timer of 9012 fires
    Row("9012", 130_000, 600.00),  # no alert: the timer was faster
    Row("1234", 140_000, 0.99),
    Row("1234", 150_000, 999.00),  # alert
]


class PaymentTime(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class InOrder(WatermarkGenerator):
    """These payments come in order: each one says that all earlier ones are there."""

    def on_event(self, event, event_timestamp, output):
        output.emit_watermark(event_timestamp - 1)

    def on_periodic_emit(self, output):
        pass


class FraudDetector(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.flag = runtime_context.get_state(ValueStateDescriptor("time of the small payment", Types.LONG()))

    def process_element(self, value, ctx: KeyedProcessFunction.Context):
        card, time_ms, amount = value
        flagged_at = self.flag.value()
        if flagged_at is not None:
            if amount > LARGE:
                yield f"card {card}: {amount:.2f} only {(time_ms - flagged_at) // 1000} s after a small payment"
            ctx.timer_service().delete_event_time_timer(flagged_at + MINUTE_MS)
            self.flag.clear()
        if amount < SMALL:
            self.flag.update(time_ms)
            ctx.timer_service().register_event_time_timer(time_ms + MINUTE_MS)

    def on_timer(self, timestamp, ctx: KeyedProcessFunction.OnTimerContext):
        self.flag.clear()


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)

    strategy = WatermarkStrategy.for_generator(InOrder).with_timestamp_assigner(PaymentTime())
    (
        env.from_collection(PAYMENTS, type_info=PAYMENT)
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda payment: payment[0], key_type=Types.STRING())
        .process(FraudDetector(), output_type=Types.STRING())
        .print()
    )

    env.execute("fraud alert")


if __name__ == "__main__":
    main()
