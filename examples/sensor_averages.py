"""Sensor averages: the mean temperature per sensor and minute of event time, from readings that come out of order.

    python examples/sensor_averages.py

Each sensor keeps a map {start of the minute: (sum, count)}. A timer at the end of each minute emits its mean and
forgets it, so the state stays small however long the stream is. A reading that comes too late goes to a side output.
"""

from headwater.common import Row, Types, WatermarkStrategy
from headwater.common.watermark_strategy import TimestampAssigner, WatermarkGenerator
from headwater.datastream import KeyedProcessFunction, OutputTag, RuntimeContext, StreamExecutionEnvironment
from headwater.datastream.state import MapStateDescriptor

MINUTE_MS = 60_000
OUT_OF_ORDER_MS = 10_000

READING = Types.ROW_NAMED(["sensor", "time_ms", "celsius"], [Types.STRING(), Types.LONG(), Types.DOUBLE()])
MEAN = Types.ROW_NAMED(["sensor", "minute", "mean"], [Types.STRING(), Types.LONG(), Types.DOUBLE()])
TOO_LATE = OutputTag("too-late", READING)

READINGS = [
    Row("roof", 1_000, 20.0),
    Row("cellar", 2_000, 11.0),
    Row("roof", 40_000, 22.0),
    Row("roof", 61_000, 24.0),
    Row("cellar", 59_000, 13.0),  # out of order, but in time
    Row("roof", 90_000, 26.0),  # minute 0 is over
    Row("cellar", 130_000, 12.0),  # minute 1 is over
    Row("roof", 5_000, 99.0),  # too late
    Row("roof", 150_000, 23.0),
]


class ReadingTime(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class AfterEveryReading(WatermarkGenerator):
    """A watermark after every reading, so that nine readings show what takes WatermarkStrategy's own ones a stream."""

    def on_event(self, event, event_timestamp, output):
        output.emit_watermark(event_timestamp - OUT_OF_ORDER_MS - 1)

    def on_periodic_emit(self, output):
        pass


class MeanPerMinute(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.sums = runtime_context.get_map_state(
            MapStateDescriptor("sums", Types.LONG(), Types.TUPLE([Types.DOUBLE(), Types.LONG()]))
        )

    def process_element(self, value, ctx: KeyedProcessFunction.Context):
        _, time_ms, celsius = value
        start = time_ms - time_ms % MINUTE_MS
        end = start + MINUTE_MS - 1
        if end <= ctx.timer_service().current_watermark():
            yield TOO_LATE, value
            return
        total, count = self.sums.get(start) or (0.0, 0)
        self.sums.put(start, (total + celsius, count + 1))
        ctx.timer_service().register_event_time_timer(end)

    def on_timer(self, timestamp, ctx: KeyedProcessFunction.OnTimerContext):
        start = timestamp + 1 - MINUTE_MS
        total, count = self.sums.get(start)
        self.sums.remove(start)
        yield Row(ctx.get_current_key(), start // MINUTE_MS, total / count)


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)

    strategy = WatermarkStrategy.for_generator(AfterEveryReading).with_timestamp_assigner(ReadingTime())
    means = (
        env.from_collection(READINGS, type_info=READING)
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda reading: reading[0], key_type=Types.STRING())
        .process(MeanPerMinute(), output_type=MEAN)
    )
    means.print("mean")
    means.get_side_output(TOO_LATE).print("too late")

    env.execute("sensor averages")


if __name__ == "__main__":
    main()
