"""V-shaped prices: a price falls at least twice in a row, and then rises above where it began.

    python examples/cep_v_shape.py

The conditions look back at the events that the partial match has so far. `consecutive` lets nothing come between the
prices of a loop, `greedy` makes the fall as long as it is, and skipping past the last event gives each V once.
"""

from headwater.cep import CEP, AfterMatchSkipStrategy, Pattern
from headwater.common import WatermarkStrategy
from headwater.datastream import StreamExecutionEnvironment

PRICES = [12, 17, 15, 13, 14, 18, 19, 16, 15, 15, 20, 21, 18, 14, 11, 22, 9]


def falls(tick, ctx):
    before = ctx.get_events_for_pattern("fall") or ctx.get_events_for_pattern("top")
    return tick[2] < before[-1][2]


def rises(tick, ctx):
    before = ctx.get_events_for_pattern("rise") or ctx.get_events_for_pattern("fall")
    return tick[2] > before[-1][2]


def above_the_top(tick, ctx):
    return rises(tick, ctx) and tick[2] > ctx.get_events_for_pattern("top")[0][2]


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)

    v_shape = (
        Pattern.begin("top", AfterMatchSkipStrategy.skip_past_last_event())
        .next("fall")
        .where(falls)
        .times_or_more(2)
        .consecutive()
        .greedy()
        .next("rise")
        .where(lambda tick, ctx: rises(tick, ctx) and not above_the_top(tick, ctx))
        .one_or_more()
        .consecutive()
        .optional()
        .next("above")
        .where(above_the_top)
    )
    ticks = [("ACME", minute, price) for minute, price in enumerate(PRICES)]
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda tick, _: tick[1] * 60_000)
    stream = env.from_collection(ticks).assign_timestamps_and_watermarks(strategy)

    def shape(match):
        prices = [tick[2] for ticks in match.values() for tick in ticks]
        return f"{match['top'][0][0]} from minute {match['top'][0][1]} on: {prices}"

    CEP.pattern(stream.key_by(lambda tick: tick[0]), v_shape).select(shape).print()
    env.execute("v shape")


if __name__ == "__main__":
    main()
