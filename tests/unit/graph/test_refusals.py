"""Graphs that cannot run are refused before anything starts, in words."""

from __future__ import annotations

import re

import pytest

from headwater.common import Configuration, Types, WatermarkStrategy
from headwater.common.connector import Source
from headwater.common.errors import PlanError
from headwater.datastream import OutputTag, RuntimeExecutionMode, StreamExecutionEnvironment


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)


def refused(env: StreamExecutionEnvironment, *words: str) -> None:
    with pytest.raises(PlanError, match=".*".join(map(re.escape, words))):
        env._plan("job")


class Endless(Source):
    bounded = False

    def discover_splits(self, parallelism, known):
        return []

    def open_reader(self, split, position):
        raise NotImplementedError


def test_empty_job(env):
    refused(env, "job 'job' is empty", "from_collection")


def test_a_lone_source_is_an_empty_job(env):
    env.from_collection([1])
    refused(env, "is empty")


def test_no_sink(env):
    env.from_collection([1]).map(abs).name("m")
    refused(env, "job 'job' has no sink", "'m'", ".print()")


def test_after_a_refusal_the_job_can_be_completed(env):
    stream = env.from_collection([1]).map(abs)
    refused(env, "no sink")
    stream.print()
    assert len(env._plan("job")[0].stages) == 2


def test_more_partitions_than_key_groups(env):
    env.set_max_parallelism(4)
    env.from_collection([1]).map(abs).set_parallelism(5).print()
    refused(env, "operator 'Map' (map) has parallelism 5", "max parallelism 4")


def test_max_parallelism_of_one_operator_must_be_the_jobs(env):
    env.from_collection([1]).map(abs).set_max_parallelism(64).print()
    refused(env, "max parallelism 64", "the job has 128", "env.set_max_parallelism(64)")


def test_forward_between_unequal_parallelisms(env):
    env.from_collection([1]).forward().map(abs).print()
    refused(env, "forward() between source 'Collection Source' with parallelism 1", "parallelism 2", "rebalance()")


def test_batch_mode_needs_an_end(env):
    env.from_source(Endless(), WatermarkStrategy.no_watermarks(), "Endless").print()
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    refused(env, "source 'Endless' is unbounded", "BATCH")


@pytest.mark.parametrize("mode", list(RuntimeExecutionMode))
def test_automatic_is_batch_if_all_sources_end(env, mode):
    env.set_runtime_mode(mode)
    env.from_collection([1]).print()
    assert env._plan("job")[0].batch_mode == (mode is not RuntimeExecutionMode.STREAMING)


def test_automatic_streams_if_one_source_does_not_end(env):
    env.set_runtime_mode(RuntimeExecutionMode.AUTOMATIC)
    env.from_source(Endless(), WatermarkStrategy.no_watermarks(), "Endless").union(env.from_collection([1])).print()
    assert not env._plan("job")[0].batch_mode


def test_one_side_output_with_two_types(env):
    stream = env.from_collection([1]).process(lambda value, ctx: [value])
    stream.get_side_output(OutputTag("t", Types.STRING())).print()
    stream.get_side_output(OutputTag("t", Types.LONG())).print()
    refused(env, "side output 't' of operator 'PROCESS' (process) is declared as", "one type")


def test_side_output_of_a_side_output(env):
    tag = OutputTag("t")
    env.from_collection([1]).map(abs).get_side_output(tag).get_side_output(OutputTag("u")).print()
    refused(env, "side output 'u' is read from side output 't'")


def test_ticks_are_asked_for_by_idleness_only_where_it_is_used():
    def needs_ticks(strategy: WatermarkStrategy) -> bool:
        env = StreamExecutionEnvironment(Configuration())
        env.from_collection([1]).assign_timestamps_and_watermarks(strategy).print()
        return env._plan("job")[0].needs_ticks

    strategy = WatermarkStrategy.for_monotonous_timestamps()
    assert not needs_ticks(strategy)
    assert needs_ticks(strategy.with_idleness(1000))


def test_too_many_streams_in_one_union(env):
    streams = [env.from_collection([1]) for _ in range(257)]
    streams[0].union(*streams[1:]).map(abs).name("all").print()
    refused(env, "operator 'all' (map) reads 257 streams, at most 256")
