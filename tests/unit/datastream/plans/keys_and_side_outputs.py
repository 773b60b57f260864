"""Keyed streams, one of them from a side output, and three sinks."""

from pyflink.common import Types
from pyflink.datastream import KeyedProcessFunction, OutputTag, ProcessFunction, StreamExecutionEnvironment

ODD = OutputTag("odd", Types.INT())


class Split(ProcessFunction):
    def process_element(self, value, ctx):
        yield value
        yield ODD, value


class Keep(KeyedProcessFunction):
    def process_element(self, value, ctx):
        yield value


env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(2)
split = env.from_collection([1, 2, 3], Types.INT()).process(Split(), Types.INT()).name("split")
split.get_side_output(ODD).key_by(lambda x: x, Types.INT()).process(Keep(), Types.INT()).name("odd").print().name("one")
totals = split.key_by(lambda x: x, Types.INT()).reduce(lambda a, b: a + b).name("totals")
totals.print().name("two")
totals.map(str, Types.STRING()).name("text").print().name("three")
print(env.get_execution_plan())
