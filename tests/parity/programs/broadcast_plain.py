"""Rules for a stream that is not keyed; shown is only what does not depend on the order of arrival."""

from pyflink.common import Types
from pyflink.datastream import BroadcastProcessFunction, StreamExecutionEnvironment
from pyflink.datastream.state import MapStateDescriptor

RULES = MapStateDescriptor("rules", Types.STRING(), Types.INT())


class Check(BroadcastProcessFunction):
    def process_element(self, value, ctx):
        known = ctx.get_broadcast_state(RULES).get("limit")
        yield value, known is None or known == 10

    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(RULES).put(*value)


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    rules = env.from_collection([("limit", 10)]).broadcast(RULES)
    results = env.from_collection([1, 2, 3]).connect(rules).process(Check())
    with results.execute_and_collect() as collected:
        for result in collected:
            print(result)


if __name__ == "__main__":
    main()
