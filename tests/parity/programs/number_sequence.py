"""A source of numbers."""

from pyflink.common import WatermarkStrategy
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.connectors.number_seq import NumberSequenceSource


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    results = env.from_source(NumberSequenceSource(1, 20), WatermarkStrategy.no_watermarks(), "numbers").filter(
        lambda x: x % 5 == 0
    )
    with results.execute_and_collect() as collected:
        for result in collected:
            print(result)


if __name__ == "__main__":
    main()
