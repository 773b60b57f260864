"""Top pages: the two most visited pages of every ten minutes, with windows behind windows.

    python examples/top_pages.py

The first windows count the visits of each page; one number per page and window is all they keep. A result has the last
millisecond of its window as its timestamp, so that windows of the same size behind it get the counts of all pages
together, and rank them.
"""

from headwater.common import Duration, Row, Time, Types, WatermarkStrategy
from headwater.common.watermark_strategy import TimestampAssigner
from headwater.datastream import AggregateFunction, ProcessWindowFunction, StreamExecutionEnvironment
from headwater.datastream.functions import ProcessAllWindowFunction
from headwater.datastream.window import TumblingEventTimeWindows

MINUTE_MS = 60_000
HOW_MANY = 2

VISIT = Types.ROW_NAMED(["page", "time_ms"], [Types.STRING(), Types.LONG()])
COUNT = Types.TUPLE([Types.STRING(), Types.LONG()])
RANKED = Types.ROW_NAMED(
    ["from_min", "to_min", "rank", "page", "visits"],
    [Types.LONG(), Types.LONG(), Types.INT(), Types.STRING(), Types.LONG()],
)

VISITS = [
    Row(page, minute * MINUTE_MS)
    for minute, pages in [
        (0, ["/", "/news", "/"]),
        (3, ["/shop", "/news"]),
        (2, ["/"]),  # out of order
        (9, ["/news", "/", "/about"]),
        (10, ["/shop", "/shop"]),
        (14, ["/shop", "/", "/about", "/"]),
        (31, ["/news"]),  # nobody came for ten minutes: that window does not exist
    ]
    for page in pages
]


class VisitTime(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Count(AggregateFunction):
    def create_accumulator(self):
        return 0

    def add(self, value, accumulator):
        return accumulator + 1

    def get_result(self, accumulator):
        return accumulator

    def merge(self, acc_a, acc_b):
        return acc_a + acc_b


class WithPage(ProcessWindowFunction):
    """The count comes alone: this adds whose it is."""

    def process(self, key, context: ProcessWindowFunction.Context, elements):
        for count in elements:
            yield key, count


class Rank(ProcessAllWindowFunction):
    def process(self, context: ProcessAllWindowFunction.Context, elements):
        window = context.window()
        best = sorted(elements, key=lambda counted: (-counted[1], counted[0]))[:HOW_MANY]
        for rank, (page, visits) in enumerate(best, start=1):
            yield Row(window.start // MINUTE_MS, window.end // MINUTE_MS, rank, page, visits)


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)

    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_minutes(1)).with_timestamp_assigner(
        VisitTime()
    )
    (
        env.from_collection(VISITS, type_info=VISIT)
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda visit: visit[0], key_type=Types.STRING())
        .window(TumblingEventTimeWindows.of(Time.minutes(10)))
        .aggregate(Count(), WithPage(), accumulator_type=Types.LONG(), output_type=COUNT)
        .window_all(TumblingEventTimeWindows.of(Time.minutes(10)))
        .process(Rank(), output_type=RANKED)
        .print()
    )

    env.execute("top pages")


if __name__ == "__main__":
    main()
