"""Rules that change while the job runs: patterns are data and come from a stream of their own.

    python examples/cep_changing_rules.py

A rule has an id and a version. With each comes the moment until which it holds at least: this is the watermark of the
stream of rules. So payments wait for the rules of their time, and each meets those that were in force then. What is no
rule goes to a side output with the reason. Conditions are small expressions over the events' fields.
"""

from headwater.cep import CEP
from headwater.common import WatermarkStrategy
from headwater.common.watermark_strategy import WatermarkGenerator
from headwater.datastream import OutputTag, StreamExecutionEnvironment


def rule(until, rule_id, version, first, then):
    steps = [{"name": "first", "where": first}, {"followed_by": "then", "where": then}]
    pattern = {"steps": steps, "within_ms": 60_000, "skip": "skip_past_last_event"}
    return {"until": until, "rule": {"id": rule_id, "version": version, "pattern": pattern}}


RULES = [  # no other rule comes until the second that each begins with
    rule(40, "tried", 1, "amount < 1", "amount > 500"),
    rule(50, "tried", 2, "amount < 5", "amount > 5 * first(first.amount)"),
    rule(55, "abroad", 1, "kind == 'cash'", "country != last(first.country"),  # rubbish: a bracket is missing
    rule(90, "abroad", 2, "kind == 'cash'", "country != last(first.country)"),
    {"until": 999, "rule": {"id": "tried", "version": 3, "remove": True}},
]

PAYMENTS = [  # (second, card, amount, country, kind)
    (10, "1234", 0.50, "NL", "shop"),
    (20, "1234", 100.00, "NL", "shop"),  # not above 500
    (30, "1234", 700.00, "NL", "shop"),  # tried, version 1
    (60, "1234", 2.00, "NL", "shop"),
    (70, "1234", 11.00, "NL", "shop"),  # tried, version 2
    (75, "5678", 50.00, "NL", "cash"),
    (80, "5678", 50.00, "BR", "cash"),  # abroad
    (100, "1234", 0.10, "NL", "shop"),
    (110, "1234", 900.00, "NL", "shop"),  # nothing: the rule is gone
]
REJECTED = OutputTag("rejected")


class NoOtherUntil(WatermarkGenerator):
    """Each record says until when no other comes: a payment until its own second, a rule as far as it knows."""

    def on_event(self, event, event_timestamp, output):
        output.emit_watermark(event_timestamp - 1)

    def on_periodic_emit(self, output):
        pass


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)

    names = ("second", "card", "amount", "country", "kind")
    events = [dict(zip(names, payment, strict=True)) for payment in PAYMENTS]
    strategy = WatermarkStrategy.for_generator(NoOtherUntil)
    payments = env.from_collection(events).assign_timestamps_and_watermarks(
        strategy.with_timestamp_assigner(lambda payment, _: payment["second"] * 1000)
    )
    rules = (
        env.from_collection(RULES)
        .assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(lambda rule, _: rule["until"] * 1000))
        .map(lambda record: record["rule"])
    )

    matches = CEP.dynamic_patterns(payments.key_by(lambda event: event["card"]), rules).side_output_rejected_patterns(
        REJECTED
    )

    def alert(match):
        first, then = match["first"][0], match["then"][0]
        return (
            f"second {then['second']}: card {then['card']}, rule {match.pattern_id} in version {match.version}: "
            f"{first['amount']:.2f} in {first['country']}, then {then['amount']:.2f} in {then['country']}"
        )

    alerts = matches.select(alert)
    rejected = alerts.get_side_output(REJECTED).map(
        lambda pair: f"rejected: rule {pair[0]['id']}, version {pair[0]['version']}"
    )
    alerts.union(rejected).print()
    env.execute("changing rules")


if __name__ == "__main__":
    main()
