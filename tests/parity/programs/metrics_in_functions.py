"""Metrics can be registered and used; they do not change results."""

from pyflink.datastream import MapFunction, RuntimeContext, StreamExecutionEnvironment


class Counted(MapFunction):
    def open(self, runtime_context: RuntimeContext):
        group = runtime_context.get_metrics_group().add_group("numbers")
        self.counter = group.counter("seen")
        self.meter = group.meter("rate")
        self.sizes = group.distribution("sizes")
        self.last = 0
        group.gauge("last", lambda: self.last)

    def map(self, value):
        self.counter.inc()
        self.meter.mark_event()
        self.sizes.update(value)
        self.last = value
        return value * 2


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    results = env.from_collection([1, 2, 3]).map(Counted())
    with results.execute_and_collect() as collected:
        for result in collected:
            print(result)


if __name__ == "__main__":
    main()
