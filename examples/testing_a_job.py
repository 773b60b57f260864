"""A job is tested without Spark: it crashes in the middle, loses a slot, and still counts every visit once.

`visits_per_page` is the program under test; everything below it is the test. Run it with pytest, or as it is.
"""

from headwater.common import Types, WatermarkStrategy
from headwater.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from headwater.datastream.connectors.data_generator import DataGeneratorSource
from headwater.datastream.state import ValueStateDescriptor
from headwater.testing import CollectingSink, JobCrashed, assert_same_records, in_process

PAGES = ("/", "/help", "/buy")


class Visits(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.visits = runtime_context.get_state(ValueStateDescriptor("visits", Types.LONG()))

    def process_element(self, value, ctx):
        self.visits.update((self.visits.value() or 0) + 1)
        yield value, self.visits.value()


def visits_per_page(sink):
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    clicks = DataGeneratorSource(lambda i: PAGES[i % 3], count=300, rate_per_second=10)
    stream = env.from_source(clicks, WatermarkStrategy.no_watermarks(), "clicks")
    stream.key_by(lambda page: page).process(Visits()).name("visits").sink_to(sink)
    env.execute("visits per page")


EXPECTED = [(page, visit) for page in PAGES for visit in range(1, 101)]


def test_a_crash_of_everything():
    sink = CollectingSink()
    with in_process(epoch_records=20) as here:
        here.crash_job(epoch=5, at="manifest-written")
        try:
            visits_per_page(sink)
        except JobCrashed as crash:
            print(f"{crash}: {len(sink.results())} of 300 records are visible")
            visits_per_page(sink)
    assert_same_records(sink.results(), EXPECTED)
    print("started again: nothing is lost, nothing is there twice")


def test_a_lost_slot():
    sink = CollectingSink()
    with in_process(epoch_records=20, checkpoint_epochs=3) as here:
        here.kill_slot("visits", partition=1, epoch=7)
        visits_per_page(sink)
    assert_same_records(sink.results(), EXPECTED)
    print("a slot was lost: the job went back to its checkpoint by itself")


if __name__ == "__main__":
    test_a_crash_of_everything()
    test_a_lost_slot()
