"""connect, broadcast state, joins and asynchronous requests in real jobs; the golden jobs kill them in the middle."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from headwater.common import Time
from headwater.common.errors import HeadwaterError
from headwater.datastream import (
    AsyncDataStream,
    AsyncFunction,
    BroadcastProcessFunction,
    CoMapFunction,
    CoProcessFunction,
    KeyedCoProcessFunction,
    OutputTag,
    StreamExecutionEnvironment,
)
from headwater.datastream.state import MapStateDescriptor, ValueStateDescriptor
from tests.spark.harness import JobRunner, epochs_of

RULES = MapStateDescriptor("rules")
REST = OutputTag("rest")


class Seen(CoProcessFunction):
    """In memory only: one instance must see both streams, of two sources, over several epochs."""

    def __init__(self) -> None:
        self.counts = [0, 0]

    def process_element1(self, value: int, ctx: CoProcessFunction.Context) -> Any:
        self.counts[0] += 1
        yield tuple(self.counts)

    def process_element2(self, value: int, ctx: CoProcessFunction.Context) -> Any:
        self.counts[1] += 1
        yield tuple(self.counts)


def test_one_instance_sees_both_streams(run_job: JobRunner) -> None:
    def build(env: StreamExecutionEnvironment) -> Any:
        return env.from_collection(range(40)).connect(env.from_collection(range(40))).process(Seen())

    results = run_job(build, 1, **epochs_of(10))
    assert len(results) == 80
    assert max(results) == (40, 40)


class Difference(KeyedCoProcessFunction):
    def open(self, runtime_context: Any) -> None:
        self.balance = runtime_context.get_state(ValueStateDescriptor("balance"))

    def add(self, key: Any, amount: int) -> Any:
        balance = (self.balance.value() or 0) + amount
        self.balance.update(balance)
        if balance == 0:
            yield key
        else:
            yield REST, (key, balance)

    def process_element1(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Any:
        return self.add(ctx.get_current_key(), value[1])

    def process_element2(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Any:
        return self.add(ctx.get_current_key(), -value[0])


def test_keyed_streams_share_state_and_have_side_outputs(run_job: JobRunner) -> None:
    def build(env: StreamExecutionEnvironment) -> Any:
        paid = env.from_collection([(key, key) for key in range(1, 101)])
        owed = env.from_collection([(key, key) for key in range(1, 101)])
        settled = paid.connect(owed).key_by(0, 1).process(Difference())
        return settled.union(settled.get_side_output(REST).map(lambda rest: "rest"))

    assert Counter(run_job(build, 2, **epochs_of(20))) == Counter([*range(1, 101), *["rest"] * 100])


class ByRule(BroadcastProcessFunction):
    def process_element(self, value: int, ctx: BroadcastProcessFunction.ReadOnlyContext) -> Any:
        yield value, sorted(ctx.get_broadcast_state(RULES))

    def process_broadcast_element(self, value: Any, ctx: BroadcastProcessFunction.Context) -> Any:
        ctx.get_broadcast_state(RULES).put(value.upper(), True)


def test_rules_reach_every_partition_before_the_records_of_their_epoch(run_job: JobRunner) -> None:
    def build(env: StreamExecutionEnvironment) -> Any:
        rules = env.from_collection(["a", "b"]).broadcast(RULES)
        return env.from_collection(range(20)).connect(rules).process(ByRule())

    assert sorted(run_job(build, 3)) == [(number, ["A", "B"]) for number in range(20)]


def test_rubbish_on_the_rule_stream_is_named(run_job: JobRunner) -> None:
    def build(env: StreamExecutionEnvironment) -> Any:
        rules = env.from_collection(["a", None]).broadcast(RULES)
        return env.from_collection(range(20)).connect(rules).process(ByRule()).name("by rule")

    with pytest.raises(HeadwaterError, match=r"operator 'by rule'(.|\n)*record: None"):
        run_job(build, 2, **{"restart-strategy.type": "none"})


class Halves(CoMapFunction):
    def map1(self, value: int) -> Any:
        return None if value % 2 else value

    def map2(self, value: int) -> Any:
        return value if value % 2 else None


def test_a_stream_connected_with_itself(run_job: JobRunner) -> None:
    def build(env: StreamExecutionEnvironment) -> Any:
        numbers = env.from_collection(range(50))
        return numbers.connect(numbers).map(Halves())

    assert sorted(run_job(build, 2)) == list(range(50))


class DiesOnce(AsyncFunction):
    """Asks, and dies with all requests under way the first time it is asked about 25."""

    def __init__(self, journal: str) -> None:
        self.journal = Path(journal)

    async def async_invoke(self, value: int) -> list[Any]:
        with self.journal.open("a") as file:
            file.write(f"{value}\n")
        await asyncio.sleep(0.001 * (value % 3))
        died = self.journal.with_suffix(".died")
        if value == 25 and not died.exists():
            died.touch()
            os._exit(1)
        return [value * 10]


@pytest.mark.parametrize("ordered", [True, False])
def test_requests_in_flight_are_repeated_after_a_crash_and_give_each_result_once(
    run_job: JobRunner, tmp_path: Path, ordered: bool
) -> None:
    journal = tmp_path / "requests"
    wait = AsyncDataStream.ordered_wait if ordered else AsyncDataStream.unordered_wait

    def build(env: StreamExecutionEnvironment) -> Any:
        return wait(env.from_collection(range(40)), DiesOnce(str(journal)), Time.minutes(1), capacity=8)

    results = run_job(build, 1, **epochs_of(10))
    assert Counter(results) == Counter(number * 10 for number in range(40))
    if ordered:
        assert results == sorted(results)
    asked = Counter(int(line) for line in journal.read_text().split())
    assert asked[25] == 2, "it did not die with the request under way"
    assert asked[5] == 1, "an epoch that was committed was asked again"
