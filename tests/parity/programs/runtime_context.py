"""What a function learns about where it runs."""

# parity: parallelism 1, because: tells the parallelism

from pyflink.datastream import MapFunction, RuntimeContext, StreamExecutionEnvironment


class Where(MapFunction):
    def open(self, runtime_context: RuntimeContext):
        self.place = (
            runtime_context.get_index_of_this_subtask(),
            runtime_context.get_number_of_parallel_subtasks(),
            runtime_context.get_attempt_number(),
        )

    def map(self, value):
        return value, self.place


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    results = env.from_collection([1, 2]).map(Where())
    with results.execute_and_collect() as collected:
        for result in collected:
            print(result)


if __name__ == "__main__":
    main()
