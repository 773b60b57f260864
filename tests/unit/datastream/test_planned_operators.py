"""What the API puts into a plan does what the method's name says, when it is run."""

from __future__ import annotations

from typing import Any

import pytest

from headwater.common import Row, Types, WatermarkStrategy
from headwater.common.errors import TimestampError
from headwater.datastream import DataStream, KeyedProcessFunction, OutputTag, StreamExecutionEnvironment
from headwater.datastream.state import ValueStateDescriptor
from headwater.testing.harness import OneInputOperatorHarness

LATE = OutputTag("late")


def run(build: Any, records: list[Any]) -> OneInputOperatorHarness:
    """The harness of the first operator that `build` adds to a stream, after `records` went through it."""
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    stream: DataStream = build(env.from_collection(records))
    stream.print()
    operators = [op for stage in env._plan("job")[0].stages for op in stage.operators]
    harness = OneInputOperatorHarness(operators[0].factory(), key_selector=operators[0].inputs[0].key_selector)
    with harness:
        harness.process_elements(records)
    return harness


class CountPerKey(KeyedProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value, ctx):
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield ctx.get_current_key(), count


def split_by_parity(value, ctx):
    if value % 2:
        yield LATE, value
    else:
        yield value


@pytest.mark.parametrize(
    ("build", "records", "expected"),
    [
        (lambda s: s.map(str), [1, 2], ["1", "2"]),
        (lambda s: s.flat_map(lambda v: range(v)), [1, 2], [0, 0, 1]),
        (lambda s: s.flat_map(str.split), ["a b", ""], ["a", "b"]),
        (lambda s: s.filter(bool), [0, 1], [1]),
        (lambda s: s.project(1, 0), [("a", 1)], [(1, "a")]),
        (lambda s: s.project(1), [("a", 1)], [(1,)]),
        (lambda s: s.process(split_by_parity), [1, 2, 3], [2]),
        (lambda s: s.key_by(0).sum(1), [("a", 1), ("b", 5), ("a", 2)], [("a", 1), ("b", 5), ("a", 3)]),
        (lambda s: s.key_by("k").max("v"), [Row(k="a", v=2), Row(k="a", v=1)], [Row(k="a", v=2)] * 2),
        (lambda s: s.key_by(0).min_by(1), [("a", 2, "x"), ("a", 1, "y")], [("a", 2, "x"), ("a", 1, "y")]),
        (lambda s: s.key_by(lambda v: v % 2).reduce(lambda a, b: a + b), [1, 2, 3], [1, 2, 4]),
        (lambda s: s.key_by(str).process(CountPerKey()), [1, 1, 2], [("1", 1), ("1", 2), ("2", 1)]),
        (lambda s: s.key_by(str).process(lambda v, ctx: [ctx.get_current_key()]), [1, 2], ["1", "2"]),
    ],
)
def test_results(build, records, expected):
    assert run(build, records).get_output() == expected


def test_side_outputs_of_a_plain_generator():
    assert run(lambda s: s.process(split_by_parity), [1, 2, 3]).get_side_output(LATE) == [1, 3]


def test_a_bad_timestamp_names_the_sources_that_its_record_may_come_from():
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    payments, refunds = env.from_collection([1]).name("payments"), env.from_collection([2]).name("refunds")
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, _: value)
    payments.map(abs).union(refunds, payments).assign_timestamps_and_watermarks(strategy).print()
    operators = [op for stage in env._plan("job")[0].stages for op in stage.operators]
    stamping = next(op for op in operators if op.name == "Timestamps/Watermarks")
    with (
        OneInputOperatorHarness(stamping.factory()) as harness,
        pytest.raises(TimestampError, match=r"source 'payments, refunds' .*timestamp -7 is negative; record: -7"),
    ):
        harness.process_elements([-7])
