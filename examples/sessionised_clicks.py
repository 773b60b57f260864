"""Sessionised clicks: the visits of each user, ended by half an hour without a click, with a process function.

    python examples/sessionised_clicks.py

What a session window does, written out: state holds the open session, and one timer per user stands at the moment it
ends. Each click moves the timer. Clicks come out of order by up to a minute.
"""

from headwater.common import Duration, Row, Types, WatermarkStrategy
from headwater.common.watermark_strategy import TimestampAssigner
from headwater.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from headwater.datastream.state import ListStateDescriptor, ValueStateDescriptor

MINUTE_MS = 60_000
GAP_MS = 30 * MINUTE_MS

CLICK = Types.ROW_NAMED(["user", "time_ms", "page"], [Types.STRING(), Types.LONG(), Types.STRING()])
SESSION = Types.ROW_NAMED(
    ["user", "start_min", "end_min", "pages"], [Types.STRING(), Types.LONG(), Types.LONG(), Types.STRING()]
)

CLICKS = [
    Row("ann", 0 * MINUTE_MS, "/"),
    Row("ann", 10 * MINUTE_MS, "/news"),
    Row("bob", 31 * MINUTE_MS, "/"),
    Row("ann", 39 * MINUTE_MS, "/news/1"),  # 29 minutes later: the same visit
    Row("bob", 45 * MINUTE_MS, "/item/7"),
    Row("bob", 44 * MINUTE_MS, "/search"),  # out of order
    Row("ann", 100 * MINUTE_MS, "/"),  # an hour later: another visit
    Row("bob", 110 * MINUTE_MS, "/basket"),
    Row("bob", 111 * MINUTE_MS, "/pay"),
]


class ClickTime(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Sessions(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.clicks = runtime_context.get_list_state(
            ListStateDescriptor("clicks", Types.TUPLE([Types.LONG(), Types.STRING()]))
        )
        self.ends_at = runtime_context.get_state(ValueStateDescriptor("ends at", Types.LONG()))

    def process_element(self, value, ctx: KeyedProcessFunction.Context):
        _, time_ms, page = value
        ends_at = self.ends_at.value()
        if ends_at is not None and time_ms >= ends_at:  # event time has not reached the timer yet, this click has
            yield self.end_session(ctx)
            ctx.timer_service().delete_event_time_timer(ends_at)
            ends_at = None
        self.clicks.add((time_ms, page))
        if ends_at is None or time_ms + GAP_MS > ends_at:
            if ends_at is not None:
                ctx.timer_service().delete_event_time_timer(ends_at)
            self.ends_at.update(time_ms + GAP_MS)
            ctx.timer_service().register_event_time_timer(time_ms + GAP_MS)

    def on_timer(self, timestamp, ctx: KeyedProcessFunction.OnTimerContext):
        yield self.end_session(ctx)

    def end_session(self, ctx):
        clicks = sorted(self.clicks.get())
        self.clicks.clear()
        self.ends_at.clear()
        pages = " ".join(page for _, page in clicks)
        return Row(ctx.get_current_key(), clicks[0][0] // MINUTE_MS, clicks[-1][0] // MINUTE_MS, pages)


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)

    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_minutes(1)).with_timestamp_assigner(
        ClickTime()
    )
    (
        env.from_collection(CLICKS, type_info=CLICK)
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda click: click[0], key_type=Types.STRING())
        .process(Sessions(), output_type=SESSION)
        .print()
    )

    env.execute("sessionised clicks")


if __name__ == "__main__":
    main()
