"""An accumulator per key."""

from pyflink.common import Types
from pyflink.datastream import AggregateFunction, KeyedProcessFunction, StreamExecutionEnvironment
from pyflink.datastream.state import AggregatingStateDescriptor


class Mean(AggregateFunction):
    def create_accumulator(self):
        return 0, 0

    def add(self, value, accumulator):
        return accumulator[0] + value, accumulator[1] + 1

    def get_result(self, accumulator):
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a, acc_b):
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


class MeanPerKey(KeyedProcessFunction):
    def open(self, runtime_context):
        descriptor = AggregatingStateDescriptor("mean", Mean(), Types.PICKLED_BYTE_ARRAY())
        self.mean = runtime_context.get_aggregating_state(descriptor)

    def process_element(self, value, ctx):
        self.mean.add(value[1])
        result = self.mean.get()
        if result > 10:
            self.mean.clear()
        yield value[0], result


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    results = (
        env.from_collection([("a", 1), ("a", 2), ("b", 30), ("b", 2), ("a", 6)])
        .key_by(lambda pair: pair[0])
        .process(MeanPerKey())
    )
    with results.execute_and_collect() as collected:
        for result in collected:
            print(result)


if __name__ == "__main__":
    main()
