"""Card fraud as a pattern: a small payment, and within ten minutes a large one with the same card.

    python examples/cep_card_fraud.py

A thief tries a card with a small sum first. `followed_by` does not mind other payments in between; `within` ends the
search. In the end the program asks why one card gave no alert: `CEP.trace` shows its partial matches, event by event.
"""

from headwater.cep import CEP, AfterMatchSkipStrategy, Pattern
from headwater.common import Duration, WatermarkStrategy
from headwater.datastream import StreamExecutionEnvironment

PAYMENTS = [  # (card, second, amount)
    ("1234", 0, 0.50),
    ("5678", 30, 0.90),
    ("1234", 60, 25.00),  # an ordinary payment in between
    ("1234", 120, 700.00),  # alert
    ("9012", 200, 900.00),  # no small payment before it
    ("1234", 300, 800.00),  # no alert: the small payment has been used
    ("5678", 640, 999.00),  # no alert: more than ten minutes later
    ("5678", 700, 0.10),
    ("5678", 710, 650.00),  # alert
]


def small(payment):
    return payment[2] < 1


def large(payment):
    return payment[2] > 500


FRAUD = (
    Pattern.begin("small", AfterMatchSkipStrategy.skip_past_last_event())
    .where(small)
    .followed_by("large")
    .where(large)
    .within(Duration.of_minutes(10))
)


def alert(match):
    (first,), (second,) = match["small"], match["large"]
    return f"card {first[0]}: {second[2]:.2f}, {second[1] - first[1]} s after {first[2]:.2f}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)

    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda payment, _: payment[1] * 1000
    )
    payments = env.from_collection(PAYMENTS).assign_timestamps_and_watermarks(strategy)
    CEP.pattern(payments.key_by(lambda payment: payment[0]), FRAUD).select(alert).print()
    env.execute("card fraud")

    print("\nWhy was there no alert for card 5678 at second 640?")
    of_one_card = [payment for payment in PAYMENTS if payment[0] == "5678"]
    print(CEP.trace(FRAUD, of_one_card, lambda payment: payment[1] * 1000))


if __name__ == "__main__":
    main()
