"""What a program becomes: stages, exchanges and chains, as text."""

from __future__ import annotations

from textwrap import dedent

import pytest

from headwater.common import Configuration, Types, WatermarkStrategy
from headwater.datastream import (
    CheckpointedFunction,
    DataStream,
    KeyedProcessFunction,
    MapFunction,
    OutputTag,
    StreamExecutionEnvironment,
)
from headwater.datastream.connectors.collect_sink import CollectSink
from headwater.datastream.connectors.number_seq import NumberSequenceSource
from headwater.graph.describe import to_text
from headwater.graph.plan import JobPlan


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)


def numbers(env: StreamExecutionEnvironment) -> DataStream:
    return env.from_source(NumberSequenceSource(1, 10), WatermarkStrategy.no_watermarks(), "Numbers")


def plan_of(env: StreamExecutionEnvironment) -> JobPlan:
    return env._plan("job")[0]


def assert_shape(env: StreamExecutionEnvironment, expected: str) -> None:
    assert to_text(plan_of(env)) == dedent(expected).strip()


class Counter(KeyedProcessFunction):
    def process_element(self, value, ctx):
        yield value


class Remembering(MapFunction, CheckpointedFunction):
    def map(self, value):
        return value

    def initialize_state(self, context):
        pass


def test_operators_of_equal_parallelism_are_chained_to_the_source(env):
    numbers(env).map(abs).filter(bool).print()
    assert_shape(
        env,
        """
        stage 0 x2
          0 Numbers x2
          1 Map x2 <- 0 chained
          2 Filter x2 <- 1 chained
          3 Print to Std. Out x2 <- 2 chained
        """,
    )


def test_key_by_starts_a_stage_and_state_gets_slots(env):
    numbers(env).map(abs).key_by(lambda n: n % 3).process(Counter()).map(str).print()
    assert_shape(
        env,
        """
        stage 0 x2
          0 Numbers x2
          1 Map x2 <- 0 chained
        stage 1 x2 slots
          2 KEYED PROCESS x2 slot <- 1 hash
          3 Map x2 <- 2 chained
          4 Print to Std. Out x2 <- 3 chained
        """,
    )


def test_a_plain_function_on_a_keyed_stream_is_partitioned_by_key_but_needs_no_slot(env):
    numbers(env).key_by(lambda n: n).map(abs).print()
    assert_shape(
        env,
        """
        stage 0 x2
          0 Numbers x2
        stage 1 x2
          1 Map x2 <- 0 hash
          2 Print to Std. Out x2 <- 1 chained
        """,
    )


def test_a_collection_is_read_by_one_task_and_rebalanced(env):
    env.from_collection([1, 2]).map(abs).print()
    assert_shape(
        env,
        """
        stage 0 x1
          0 Collection Source x1
        stage 1 x2
          1 Map x2 <- 0 rebalance
          2 Print to Std. Out x2 <- 1 chained
        """,
    )


def test_operator_state_is_moved_out_of_stage_0_by_a_forward_exchange(env):
    numbers(env).map(Remembering()).print()
    assert_shape(
        env,
        """
        stage 0 x2
          0 Numbers x2
        stage 1 x2 slots
          1 Map x2 slot <- 0 forward
          2 Print to Std. Out x2 <- 1 chained
        """,
    )


def test_watermarks_behind_a_source_are_made_in_stage_0_per_split(env):
    env.from_source(NumberSequenceSource(1, 9), WatermarkStrategy.for_monotonous_timestamps(), "Numbers").print()
    assert_shape(
        env,
        """
        stage 0 x2
          0 Numbers x2
          1 Timestamps/Watermarks x2 <- 0 chained
          2 Print to Std. Out x2 <- 1 chained
        """,
    )


def test_watermarks_behind_a_shuffle_need_a_slot(env):
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    numbers(env).rebalance().map(abs).assign_timestamps_and_watermarks(strategy).print()
    assert_shape(
        env,
        """
        stage 0 x2
          0 Numbers x2
        stage 1 x2 slots
          1 Map x2 <- 0 rebalance
          2 Timestamps/Watermarks x2 slot <- 1 chained
          3 Print to Std. Out x2 <- 2 chained
        """,
    )


def test_watermarks_keep_the_parallelism_of_what_they_read(env):
    env.from_collection([1]).assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps()).print()
    assert_shape(
        env,
        """
        stage 0 x1
          0 Collection Source x1
          1 Timestamps/Watermarks x1 <- 0 chained
        stage 1 x2
          2 Print to Std. Out x2 <- 1 rebalance
        """,
    )


def test_a_union_of_a_union_is_edges_into_one_operator(env):
    left, middle, right = numbers(env), numbers(env), numbers(env)
    left.union(middle).union(right).map(abs).print()
    assert_shape(
        env,
        """
        stage 0 x2
          0 Numbers x2
          1 Numbers x2
          2 Numbers x2
          3 Map x2 <- 0 chained, 1 chained, 2 chained
          4 Print to Std. Out x2 <- 3 chained
        """,
    )


def test_a_union_of_unequal_depths_sits_at_the_deepest_and_the_short_edge_skips(env):
    shallow = numbers(env)
    deep = numbers(env).key_by(lambda n: n).process(Counter()).key_by(lambda n: n).process(Counter())
    deep.union(shallow).map(abs).print()
    assert_shape(
        env,
        """
        stage 0 x2
          0 Numbers x2
          1 Numbers x2
        stage 1 x2 slots
          2 KEYED PROCESS x2 slot <- 1 hash
        stage 2 x2 slots
          3 KEYED PROCESS x2 slot <- 2 hash
          4 Map x2 <- 3 chained, 0 forward
          5 Print to Std. Out x2 <- 4 chained
        """,
    )


def test_a_stream_united_with_itself_is_read_twice(env):
    stream = numbers(env)
    stream.union(stream).print()
    assert_shape(
        env,
        """
        stage 0 x2
          0 Numbers x2
          1 Map x2 <- 0 chained
          2 Print to Std. Out x2 <- 0 chained, 1 chained
        """,
    )


def test_side_output_is_an_edge_of_its_own(env):
    late = OutputTag("late")
    processed = numbers(env).process(lambda value, ctx: [value])
    processed.print("main")
    processed.get_side_output(late).map(abs).print("late")
    assert_shape(
        env,
        """
        stage 0 x2
          0 Numbers x2
          1 PROCESS x2 <- 0 chained
          2 Print to Std. Out x2 <- 1 chained
          3 Map x2 <- 1[late] chained
          4 Print to Std. Out x2 <- 3 chained
        """,
    )


def test_a_partitioning_does_not_reach_the_side_output(env):
    processed = numbers(env).process(lambda value, ctx: [value])
    processed.rebalance().get_side_output(OutputTag("late")).print()
    assert plan_of(env).operator(2).inputs[0].chained


@pytest.mark.parametrize(
    ("partition", "exchange"),
    [
        (lambda s: s.rebalance(), "rebalance"),
        (lambda s: s.rescale(), "rescale"),
        (lambda s: s.shuffle(), "shuffle"),
        (lambda s: s.broadcast(), "broadcast"),
        (lambda s: s.global_(), "global"),
        (lambda s: s.forward(), "chained"),
        (lambda s: s.partition_custom(lambda key, n: key % n, lambda v: v), "custom"),
        (lambda s: s.rebalance().shuffle(), "shuffle"),
        (lambda s: s.rebalance().key_by(lambda v: v), "hash"),
    ],
)
def test_partitionings(env, partition, exchange):
    partition(numbers(env)).print()
    assert to_text(plan_of(env)).endswith(f"Print to Std. Out x2 <- 0 {exchange}")


def test_differing_parallelism_rebalances(env):
    numbers(env).map(abs).set_parallelism(3).print().set_parallelism(1)
    assert_shape(
        env,
        """
        stage 0 x2
          0 Numbers x2
        stage 1 x3
          1 Map x3 <- 0 rebalance
        stage 2 x1
          2 Print to Std. Out x1 <- 1 rebalance
        """,
    )


def test_start_new_chain_and_disable_chaining_cut(env):
    numbers(env).map(abs).start_new_chain().filter(bool).print()
    assert [stage.index for stage in plan_of(env).stages] == [0, 1]
    env.close()
    numbers(env).map(abs).disable_chaining().filter(bool).print()
    assert_shape(
        env,
        """
        stage 0 x2
          0 Numbers x2
        stage 1 x2
          1 Map x2 <- 0 forward
        stage 2 x2
          2 Filter x2 <- 1 forward
          3 Print to Std. Out x2 <- 2 chained
        """,
    )


def test_disabled_operator_chaining_cuts_everywhere(env):
    env.disable_operator_chaining()
    numbers(env).map(abs).print()
    assert [len(stage.operators) for stage in plan_of(env).stages] == [0, 1, 1]


def test_declared_types_are_checked_right_behind_their_operator(env):
    tag = OutputTag("late", Types.STRING())
    processed = numbers(env).process(lambda value, ctx: [value], output_type=Types.LONG())
    processed.print()
    processed.get_side_output(tag).print()
    assert_shape(
        env,
        """
        stage 0 x2
          0 Numbers x2
          1 PROCESS x2 <- 0 chained
          4 Type-Check PROCESS x2 <- 1 chained
          2 Print to Std. Out x2 <- 4 chained
          5 Type-Check PROCESS[late] x2 <- 1[late] chained
          3 Print to Std. Out x2 <- 5 chained
        """,
    )


def test_the_type_of_a_source_is_checked_before_its_timestamps_are_read(env):
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    env.from_source(NumberSequenceSource(1, 9), strategy, "Numbers", Types.LONG()).print()
    assert_shape(
        env,
        """
        stage 0 x2
          0 Numbers x2
          3 Type-Check Numbers x2 <- 0 chained
          1 Timestamps/Watermarks x2 <- 3 chained
          2 Print to Std. Out x2 <- 1 chained
        """,
    )


def test_type_checks_can_be_switched_off_and_uids_do_not_change(env):
    def uids(configuration: Configuration) -> list[str]:
        env = StreamExecutionEnvironment(configuration)
        numbers(env).map(abs, Types.LONG()).key_by(abs, Types.LONG()).process(Counter(), Types.LONG()).print()
        return [op.uid for stage in plan_of(env).stages for op in stage.operators if "Check" not in op.name]

    off = Configuration().set_boolean("headwater.type-check", False)
    assert uids(off) == uids(Configuration())
    assert len(uids(off)) == 3


def test_a_collected_stream_is_collected_where_it_is(env):
    env.from_collection([1])._add_sink(CollectSink(), "Collect", like_input=True)
    assert_shape(
        env,
        """
        stage 0 x1
          0 Collection Source x1
          1 Collect x1 <- 0 chained
        """,
    )


def test_ids_do_not_depend_on_what_was_built_before(env):
    numbers(env).map(abs).print()
    first = to_text(plan_of(env))
    env.close()
    numbers(env).map(abs).print()
    assert to_text(plan_of(env)) == first


def test_operators_nobody_reads_still_run_but_unread_sources_do_not(env):
    numbers(env)
    stream = numbers(env)
    stream.map(abs).name("for its side effects")
    stream.print()
    assert [op.name for op in plan_of(env).stages[0].operators] == ["for its side effects", "Print to Std. Out"]
    assert len(plan_of(env).sources) == 1
