"""Fraud rules that change while the job runs: broadcast state, read by a keyed stream of payments.

    python examples/broadcast_rules.py

A rule says, from a moment on, above which sum within a minute a card is suspicious. Rules reach every partition and are
kept in broadcast state. A payment waits for its own moment in event time, in a timer, before it is judged: so it meets
the rules that were in force then, in whatever order payments and rules arrive. A rule that is rubbish is told on a side
output.
"""

from headwater.common import Row, Types, WatermarkStrategy
from headwater.common.watermark_strategy import TimestampAssigner
from headwater.datastream import (
    KeyedBroadcastProcessFunction,
    OutputTag,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from headwater.datastream.state import MapStateDescriptor

MINUTE_MS = 60_000

PAYMENT = Types.ROW_NAMED(["card", "time_ms", "amount"], [Types.STRING(), Types.LONG(), Types.DOUBLE()])
RULE = Types.ROW_NAMED(["name", "time_ms", "limit"], [Types.STRING(), Types.LONG(), Types.DOUBLE()])

PAYMENTS = [
    Row("1234", 1_000, 400.00),
    Row("1234", 20_000, 450.00),  # 850 in a minute, and no rule against it yet
    Row("5678", 40_000, 700.00),  # alert: above 500, since second 30
    Row("1234", 50_000, 10.00),  # alert: 860 in a minute
    Row("1234", 130_000, 450.00),  # the others are more than a minute ago
    Row("5678", 200_000, 700.00),  # no alert: the limit is 1000 now
    Row("9012", 210_000, 60.00),
    Row("9012", 260_000, 70.00),  # alert: the night rule came in second 240
    Row("9012", 320_000, 90.00),  # no alert: the night rule is gone
]

RULES = [
    Row("sum", 30_000, 500.00),
    Row("sum", 180_000, 1000.00),
    Row("night", 220_000, -1.00),  # rubbish: a limit must be positive, 0 takes the rule away
    Row("night", 240_000, 100.00),
    Row("night", 300_000, 0.00),
]

RULES_STATE = MapStateDescriptor("rules")  # {name: [(from, limit), ...]}, in the order of time
REFUSED = OutputTag("refused rules", Types.STRING())


class TimeOfEvent(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Judge(KeyedBroadcastProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        # {time: amount} of the card's payments: of the last minute, and of those that wait for their moment.
        self.payments = runtime_context.get_map_state(MapStateDescriptor("payments", Types.LONG(), Types.DOUBLE()))
        self.tells = runtime_context.get_index_of_this_subtask() == 0

    def process_broadcast_element(self, value, ctx: KeyedBroadcastProcessFunction.Context):
        name, from_ms, limit = value
        if limit < 0:
            if self.tells:  # every partition sees every rule: one of them speaks for all
                yield REFUSED, f"refused: rule {name} of second {from_ms // 1000} has limit {limit:.2f}"
            return
        rules = ctx.get_broadcast_state(RULES_STATE)
        rules.put(name, [*(rules.get(name) or []), (from_ms, limit)])

    def process_element(self, value, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext):
        _, time_ms, amount = value
        self.payments.put(time_ms, (self.payments.get(time_ms) or 0.0) + amount)
        ctx.timer_service().register_event_time_timer(time_ms)

    def on_timer(self, timestamp, ctx: KeyedBroadcastProcessFunction.OnTimerContext):
        spent = 0.0
        for time_ms, amount in self.payments.items():
            if time_ms <= timestamp - MINUTE_MS:
                self.payments.remove(time_ms)
            elif time_ms <= timestamp:
                spent += amount
        for name, versions in ctx.get_broadcast_state(RULES_STATE).items():
            in_force = [limit for from_ms, limit in versions if from_ms <= timestamp][-1:]
            if in_force and 0 < in_force[0] < spent:
                yield (
                    f"second {timestamp // 1000}: card {ctx.get_current_key()} spent {spent:.2f} within a minute, "
                    f"rule {name} allows {in_force[0]:.2f}"
                )


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)

    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(TimeOfEvent())
    payments = env.from_collection(PAYMENTS, type_info=PAYMENT).assign_timestamps_and_watermarks(strategy)
    rules = env.from_collection(RULES, type_info=RULE).assign_timestamps_and_watermarks(strategy)

    alerts = (
        payments.key_by(lambda payment: payment[0], key_type=Types.STRING())
        .connect(rules.broadcast(RULES_STATE))
        .process(Judge(), output_type=Types.STRING())
    )
    # One partition prints: with two, which line comes first would be up to them.
    alerts.union(alerts.get_side_output(REFUSED)).print().set_parallelism(1)

    env.execute("broadcast rules")


if __name__ == "__main__":
    main()
