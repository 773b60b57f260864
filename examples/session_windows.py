"""Session windows: how long each visit lasted and what it brought, where a basket extends the visit.

    python examples/session_windows.py

The visits of `sessionised_clicks.py` in a few lines. A visit ends after half an hour without a click; who has something
in the basket gets an hour. Two visits become one if a click that comes late falls between them: session windows merge,
and so do their accumulators.
"""

from headwater.common import Duration, Row, Types, WatermarkStrategy
from headwater.common.watermark_strategy import TimestampAssigner
from headwater.datastream import AggregateFunction, ProcessWindowFunction, StreamExecutionEnvironment
from headwater.datastream.window import EventTimeSessionWindows, SessionWindowTimeGapExtractor

MINUTE_MS = 60_000

CLICK = Types.ROW_NAMED(
    ["user", "time_ms", "page", "cents"], [Types.STRING(), Types.LONG(), Types.STRING(), Types.LONG()]
)
VISIT = Types.ROW_NAMED(
    ["user", "start_min", "end_min", "clicks", "cents"],
    [Types.STRING(), Types.LONG(), Types.LONG(), Types.LONG(), Types.LONG()],
)

CLICKS = [
    Row("ann", 0 * MINUTE_MS, "/", 0),
    Row("bob", 5 * MINUTE_MS, "/", 0),
    Row("ann", 20 * MINUTE_MS, "/basket", 1_250),
    Row("bob", 50 * MINUTE_MS, "/item/7", 0),  # 45 minutes later: another visit, so far
    Row("bob", 30 * MINUTE_MS, "/item/3", 0),  # late, and between the two: they are one visit
    Row("ann", 75 * MINUTE_MS, "/pay", 0),  # 55 minutes later, but with a basket: the same visit
    Row("ann", 110 * MINUTE_MS, "/", 0),  # 35 minutes later: another visit
]


class ClickTime(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Patience(SessionWindowTimeGapExtractor):
    def extract(self, element):
        return (60 if element[2] == "/basket" else 30) * MINUTE_MS


class ClicksAndCents(AggregateFunction):
    def create_accumulator(self):
        return 0, 0

    def add(self, value, accumulator):
        return accumulator[0] + 1, accumulator[1] + value[3]

    def get_result(self, accumulator):
        return accumulator

    def merge(self, acc_a, acc_b):
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


class AsVisit(ProcessWindowFunction):
    def process(self, key, context: ProcessWindowFunction.Context, elements):
        window = context.window()
        for clicks, cents in elements:
            yield Row(key, window.start // MINUTE_MS, window.end // MINUTE_MS, clicks, cents)


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)

    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_minutes(30)).with_timestamp_assigner(
        ClickTime()
    )
    (
        env.from_collection(CLICKS, type_info=CLICK)
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda click: click[0], key_type=Types.STRING())
        .window(EventTimeSessionWindows.with_dynamic_gap(Patience()))
        .aggregate(
            ClicksAndCents(),
            AsVisit(),
            accumulator_type=Types.TUPLE([Types.LONG(), Types.LONG()]),
            output_type=VISIT,
        )
        .print()
    )

    env.execute("session windows")


if __name__ == "__main__":
    main()
