"""Every way in which records go from one operator to the next."""

from pyflink.common import Types, WatermarkStrategy
from pyflink.datastream import CoMapFunction, StreamExecutionEnvironment
from pyflink.datastream.connectors.number_seq import NumberSequenceSource


class Same(CoMapFunction):
    def map1(self, value):
        return value

    def map2(self, value):
        return value


env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)
left = env.from_collection([1, 2, 3], Types.INT()).name("left")
right = env.from_source(NumberSequenceSource(1, 3), WatermarkStrategy.no_watermarks(), "right")
spread = left.rebalance().map(lambda x: x, Types.INT()).name("spread").set_parallelism(3)
both = spread.union(left.filter(lambda x: x > 1).name("some").shuffle()).connect(right).map(Same(), Types.INT())
copied = both.name("both").broadcast().map(lambda x: x, Types.INT()).name("copied").set_parallelism(2)
wide = copied.rescale().map(lambda x: x, Types.INT()).name("wide").set_parallelism(4)
narrow = wide.map(lambda x: x, Types.INT()).name("narrow")
narrow.print().name("shown")
print(env.get_execution_plan())
