"""A heart-beat that stays away: the pattern ends with what must not happen.

    python examples/cep_missing_heartbeat.py

A machine that is on sends a beat at least every 30 seconds. `not_followed_by` as the last step matches when the time of
`within` is over and no such event came: no event is needed to tell. A machine that says good-bye is not missed.
"""

from headwater.cep import CEP, Pattern
from headwater.common import Duration, WatermarkStrategy
from headwater.datastream import StreamExecutionEnvironment

SIGNALS = [  # (machine, second, signal)
    ("press", 0, "beat"),
    ("drill", 5, "beat"),
    ("press", 20, "beat"),
    ("drill", 25, "beat"),
    ("press", 45, "beat"),  # the last one: nobody hears of the press again
    ("drill", 50, "off"),  # says good-bye
    ("lathe", 60, "beat"),
    ("lathe", 85, "beat"),
    ("lathe", 130, "beat"),  # 45 s after the one before
    ("lathe", 140, "off"),
]


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)

    silent = (
        Pattern.begin("beat")
        .where(lambda signal: signal[2] == "beat")
        .not_followed_by("another sign of life")
        .within(Duration.of_seconds(30))
    )
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda signal, _: signal[1] * 1000)
    signals = env.from_collection(SIGNALS).assign_timestamps_and_watermarks(strategy)

    def alarm(match, ctx):
        (last,) = match["beat"]
        yield f"second {ctx.timestamp() // 1000}: {last[0]} is silent since second {last[1]}"

    CEP.pattern(signals.key_by(lambda signal: signal[0]), silent).process(alarm).print()
    env.execute("missing heartbeat")


if __name__ == "__main__":
    main()
