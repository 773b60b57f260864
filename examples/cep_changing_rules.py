"""Rules that change while the job runs: patterns are data and come from a stream of their own.

    python examples/cep_changing_rules.py

A rule has an id and a version, and a moment from which it holds: the timestamp of its record. Payments wait for the
rules of their time, and rules for the payments before them. So each payment meets the rules that were in force then,
whichever of the two streams is read first. What is no rule goes to a side output with the reason. Conditions are small
expressions over the events' fields.
"""

from headwater.cep import CEP
from headwater.common import WatermarkStrategy
from headwater.datastream import OutputTag, StreamExecutionEnvironment


def rule(second, rule_id, version, first, then):
    steps = [{"name": "first", "where": first}, {"followed_by": "then", "where": then}]
    pattern = {"steps": steps, "within_ms": 60_000, "skip": "skip_past_last_event"}
    return {"second": second, "rule": {"id": rule_id, "version": version, "pattern": pattern}}


RULES = [  # each with the second from which it holds
    rule(0, "tried", 1, "amount < 1", "amount > 500"),
    rule(40, "tried", 2, "amount < 5", "amount > 5 * first(first.amount)"),
    rule(50, "abroad", 1, "kind == 'cash'", "country != last(first.country"),  # rubbish: a bracket is missing
    rule(55, "abroad", 2, "kind == 'cash'", "country != last(first.country)"),
    {"second": 90, "rule": {"id": "tried", "version": 3, "remove": True}},
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


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)

    names = ("second", "card", "amount", "country", "kind")
    events = [dict(zip(names, payment, strict=True)) for payment in PAYMENTS]
    by_second = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda each, _: each["second"] * 1000
    )
    payments = env.from_collection(events).assign_timestamps_and_watermarks(by_second)
    rules = env.from_collection(RULES).assign_timestamps_and_watermarks(by_second).map(lambda record: record["rule"])

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
