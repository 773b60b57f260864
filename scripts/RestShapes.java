import org.apache.flink.api.common.accumulators.IntCounter;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.connector.source.util.ratelimit.RateLimiterStrategy;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.util.Collector;

/** The job whose REST answers `record_flink_rest.py` records: a source, a keyed function with state, a sink. */
public class RestShapes {
    public static void main(String[] args) throws Exception {
        String how = args.length > 0 ? args[0] : "running";
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        long count = how.equals("running") ? Long.MAX_VALUE : 1000;
        DataGeneratorSource<Long> numbers =
                new DataGeneratorSource<>(n -> n, count, RateLimiterStrategy.perSecond(200), Types.LONG);
        env.fromSource(
                        numbers,
                        WatermarkStrategy.<Long>forMonotonousTimestamps().withTimestampAssigner((n, t) -> n),
                        "numbers")
                .uid("numbers")
                .map(n -> n + 1)
                .returns(Types.LONG)
                .name("plus one")
                .uid("plus-one")
                .keyBy(n -> n % 10)
                .process(new Count(how.equals("failed")))
                .name("count")
                .uid("count")
                .sinkTo(new DiscardingSink<>())
                .name("discard")
                .uid("discard");
        env.execute("rest-" + how);
    }

    static class Count extends KeyedProcessFunction<Long, Long, Long> {
        private final boolean fails;
        private final IntCounter seen = new IntCounter();
        private ValueState<Long> count;

        Count(boolean fails) {
            this.fails = fails;
        }

        @Override
        public void open(OpenContext context) {
            count = getRuntimeContext().getState(new ValueStateDescriptor<>("count", Types.LONG));
            getRuntimeContext().addAccumulator("seen", seen);
        }

        @Override
        public void processElement(Long value, Context context, Collector<Long> out) throws Exception {
            if (fails && value == 500) {
                throw new IllegalStateException("number 500 is not welcome");
            }
            seen.add(1);
            Long before = count.value();
            count.update(before == null ? 1 : before + 1);
            out.collect(count.value());
        }
    }
}
