"""Where records go: partitioners, unions of any depth, side outputs."""

from __future__ import annotations

from collections import Counter
from itertools import chain
from typing import Any

from headwater.datastream import (
    KeyedProcessFunction,
    MapFunction,
    OutputTag,
    Partitioner,
    ProcessFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from tests.spark.harness import JobRunner, epochs_of


class Where(MapFunction):
    """(partition, value)"""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.partition = runtime_context.get_index_of_this_subtask()

    def map(self, value: Any) -> Any:
        return self.partition, value


class LastDigit(Partitioner):
    def partition(self, key: int, num_partitions: int) -> int:
        return key % 10 % num_partitions


NUMBERS = list(range(90))


def routed(run_job: JobRunner, route: Any) -> dict[int, list[int]]:
    """{partition: what came to it}"""
    found = run_job(lambda env: route(env.from_collection(NUMBERS)).map(Where()), 3, **epochs_of(40))
    by_partition: dict[int, list[int]] = {0: [], 1: [], 2: []}
    for partition, number in found:
        by_partition[partition].append(number)
    return by_partition


def test_rebalance_and_rescale_spread_evenly(run_job: JobRunner) -> None:
    for route in (lambda stream: stream.rebalance(), lambda stream: stream.rescale()):
        found = routed(run_job, route)
        assert Counter(chain.from_iterable(found.values())) == Counter(NUMBERS)
        assert all(28 <= len(numbers) <= 32 for numbers in found.values())


def test_shuffle_scatters_and_loses_nothing(run_job: JobRunner) -> None:
    found = routed(run_job, lambda stream: stream.shuffle())
    assert Counter(chain.from_iterable(found.values())) == Counter(NUMBERS)
    assert all(numbers for numbers in found.values())
    assert [number % 3 for number in found[0]] != [found[0][0] % 3] * len(found[0]), "that is a rebalance"


def test_broadcast_gives_everything_to_everybody(run_job: JobRunner) -> None:
    found = routed(run_job, lambda stream: stream.broadcast())
    assert all(Counter(numbers) == Counter(NUMBERS) for numbers in found.values())


def test_global_gives_everything_to_the_first(run_job: JobRunner) -> None:
    assert routed(run_job, lambda stream: stream.global_()) == {0: NUMBERS, 1: [], 2: []}


def test_partition_custom_follows_the_partitioner(run_job: JobRunner) -> None:
    found = routed(run_job, lambda stream: stream.partition_custom(LastDigit(), lambda number: number))
    assert found == {p: [number for number in NUMBERS if number % 10 % 3 == p] for p in range(3)}


def test_forward_keeps_the_partition(run_job: JobRunner) -> None:
    def build(env: StreamExecutionEnvironment) -> Any:
        first = env.from_collection(NUMBERS).rebalance().map(Where())
        return first.forward().map(Where())

    assert all(before == after for after, (before, _) in run_job(build, 3))


def test_key_by_keeps_keys_together_and_in_order(run_job: JobRunner) -> None:
    class Tell(KeyedProcessFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            self.partition = runtime_context.get_index_of_this_subtask()

        def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
            yield ctx.get_current_key(), self.partition, value

    found = run_job(
        lambda env: env.from_collection(NUMBERS).key_by(lambda number: number % 11).process(Tell()), 3, **epochs_of(40)
    )
    homes: dict[int, set[int]] = {}
    for key, partition, _ in found:
        homes.setdefault(key, set()).add(partition)
    assert all(len(partitions) == 1 for partitions in homes.values())
    assert set.union(*homes.values()) == {0, 1, 2}
    for key in range(11):
        assert [value for of, _, value in found if of == key] == [n for n in NUMBERS if n % 11 == key]


def test_union_of_three_streams_of_different_depth(run_job: JobRunner) -> None:
    def build(env: StreamExecutionEnvironment) -> Any:
        near = env.from_collection(NUMBERS).map(lambda n: ("near", n))
        middle = env.from_collection(NUMBERS).rebalance().map(lambda n: ("middle", n))
        far = (
            env.from_collection([("far", n) for n in NUMBERS])
            .key_by(lambda pair: pair[1] % 5)
            .reduce(lambda a, b: b)
            .key_by(lambda pair: pair[1] % 3)
            .reduce(lambda a, b: b)
        )
        return near.union(middle, far).key_by(lambda pair: pair[0]).reduce(lambda a, b: (a[0], a[1] + b[1]))

    found = run_job(build, 2, **epochs_of(40))
    assert Counter(kind for kind, _ in found) == {"near": 90, "middle": 90, "far": 90}
    for kind in ("near", "middle", "far"):
        assert max(total for of, total in found if of == kind) == sum(NUMBERS)


def test_union_of_a_stream_with_itself(run_job: JobRunner) -> None:
    def build(env: StreamExecutionEnvironment) -> Any:
        stream = env.from_collection(NUMBERS).map(lambda n: n)
        return stream.union(stream)

    assert Counter(run_job(build, 2)) == Counter(NUMBERS * 2)


ODD = OutputTag("odd")
LARGE = OutputTag("large")


class Sort(ProcessFunction):
    def process_element(self, value: int, ctx: ProcessFunction.Context) -> Any:
        if value % 2:
            yield ODD, ("odd", value)
        else:
            yield "even", value
        if value > 80:
            yield LARGE, ("large", value)


def test_side_outputs_before_and_behind_a_shuffle(run_job: JobRunner) -> None:
    def build(env: StreamExecutionEnvironment) -> Any:
        near = env.from_collection(NUMBERS).process(Sort())
        far = env.from_collection(NUMBERS).rebalance().process(Sort())
        streams = [near.get_side_output(ODD), near.get_side_output(LARGE), far, far.get_side_output(LARGE)]
        return near.union(*streams)

    expected: Counter[Any] = Counter(("odd", n) for n in NUMBERS if n % 2)
    for _ in range(2):
        expected.update(("even", n) for n in NUMBERS if n % 2 == 0)
        expected.update(("large", n) for n in NUMBERS if n > 80)
    assert Counter(run_job(build, 2, **epochs_of(40))) == expected
