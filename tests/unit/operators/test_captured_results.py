"""What a function emits is what it was when it was emitted, whatever becomes of the object later."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from headwater.common.output_tag import OutputTag
from headwater.common.types import Row
from headwater.operators.async_io.wait import AsyncSettings, AsyncWaitOperator
from headwater.operators.filter import FilterOperator
from headwater.operators.flat_map import FlatMapOperator
from headwater.operators.functions.asynchronous import AsyncFunction
from headwater.operators.functions.join import ProcessJoinFunction
from headwater.operators.functions.plain import FilterFunction, FlatMapFunction, KeyedProcessFunction, MapFunction
from headwater.operators.join.co_group import JoinWindowFunction
from headwater.operators.join.interval_join import IntervalJoinOperator, IntervalJoinSettings
from headwater.operators.map import MapOperator
from headwater.operators.reduce import KeyedReduceOperator
from headwater.operators.results import taken
from headwater.state.descriptors import MapStateDescriptor, ValueStateDescriptor
from headwater.testing import OneInputOperatorHarness, TwoInputOperatorHarness

SIDE = OutputTag("side")


@dataclass
class Account:
    number: int = 0
    notes: list[int] = field(default_factory=list)


class Counting(KeyedProcessFunction):
    def open(self, runtime_context: Any) -> None:
        self.account = runtime_context.get_state(ValueStateDescriptor("account"))
        self.accounts = runtime_context.get_map_state(MapStateDescriptor("accounts"))

    def process_element(self, value: int, ctx: Any) -> Iterator[Any]:
        for state in (self.account, None):
            account = (self.account.value() if state else self.accounts.get("a")) or Account()
            account.number += 1
            account.notes.append(value)
            if state:
                self.account.update(account)
            else:
                self.accounts.put("a", account)
            yield account
            yield SIDE, account
            account.number = -1


@pytest.mark.parametrize("batch", [1, 2, 10])
def test_an_object_that_is_stored_emitted_and_changed_again(batch: int) -> None:
    harness = OneInputOperatorHarness(Counting(), key_selector=lambda value: 0)
    for first in range(0, 10, batch):
        harness.process_elements(range(first, min(first + batch, 10)))
    expected = [Account(n + 1, list(range(n + 1))) for n in range(10) for _ in range(2)]
    assert harness.get_output() == expected
    assert harness.get_side_output(SIDE) == expected


def test_what_the_test_does_to_a_record_is_not_seen() -> None:
    harness = OneInputOperatorHarness(MapOperator(lambda value: value))
    record = [1]
    harness.process_element(record)
    record.append(2)
    harness.process_element(record)
    assert harness.get_output() == [[1], [1, 2]]


class Reusing(FlatMapFunction, MapFunction, FilterFunction):
    def __init__(self) -> None:
        self.buffer: list[int] = []
        self.seen: list[list[int]] = []

    def flat_map(self, value: list[int]) -> Iterator[list[int]]:
        for number in value:
            self.buffer.append(number)
            yield self.buffer

    def map(self, value: list[int]) -> list[int]:
        self.buffer += value
        return self.buffer

    def filter(self, value: list[int]) -> bool:
        for each in self.seen:
            each.append(-1)
        self.seen.append(value)
        return True


@pytest.mark.parametrize("timestamps", [None, [1, 2]])
def test_one_object_returned_again_and_again(timestamps: list[int] | None) -> None:
    for operator, expected in [
        (FlatMapOperator(Reusing()), [[1], [1, 2], [1, 2, 3]]),
        (MapOperator(Reusing()), [[1, 2], [1, 2, 3]]),
        (FilterOperator(Reusing()), [[1, 2], [3]]),
    ]:
        harness = OneInputOperatorHarness(operator)
        harness.process_elements([[1, 2], [3]], timestamps)
        assert harness.get_output() == expected


def test_a_map_that_raises_stop_iteration_does_not_end_the_batch_in_silence() -> None:
    harness = OneInputOperatorHarness(MapOperator(lambda value: next(iter(value))))
    with pytest.raises(Exception, match="StopIteration"):
        harness.process_elements([[1], [], [2]])


def test_a_reduce_function_that_returns_one_object_for_all_keys() -> None:
    reused = Account()

    def reduce(one: Account, other: Account) -> Account:
        reused.number = one.number + other.number
        return reused

    def key(account: Account) -> int:
        return account.number % 2

    harness = OneInputOperatorHarness(KeyedReduceOperator(key, reduce), key)
    harness.process_elements([Account(1), Account(2), Account(3), Account(4), Account(6)])
    assert [account.number for account in harness.get_output()] == [1, 2, 4, 6, 12]


class KeyedByRow(KeyedProcessFunction):
    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))

    def process_element(self, value: Row, ctx: Any) -> Iterator[Any]:
        self.count.update((self.count.value() or 0) + 1)
        value[0] = "changed"
        self.count.update(self.count.value() + 1)
        yield self.count.value()


def test_a_record_that_is_its_own_key_may_be_changed() -> None:
    harness = OneInputOperatorHarness(KeyedByRow(), key_selector=lambda row: row)
    harness.process_elements([Row("a"), Row("b"), Row("a")])
    assert harness.get_output() == [2, 2, 4]
    assert harness.num_keyed_state_entries() == 2


class Shared(AsyncFunction):
    def __init__(self) -> None:
        self.buffer: list[int] = []

    async def async_invoke(self, value: int) -> list[Any]:
        self.buffer.append(value)
        return [self.buffer]


def test_asynchronous_results() -> None:
    harness = OneInputOperatorHarness(AsyncWaitOperator(AsyncSettings(0, 1, True), Shared()))
    harness.process_elements([1, 2, 3])
    assert harness.get_output() == [[1], [1, 2], [1, 2, 3]]


class Spoiling(ProcessJoinFunction):
    def process_element(self, left: Account, right: Account, ctx: Any) -> Iterator[Any]:
        yield left.number, right.number
        right.number += 100


def test_a_join_function_does_not_change_what_is_buffered() -> None:
    def key(account: Account) -> int:
        return 0

    operator = IntervalJoinOperator(key, key, IntervalJoinSettings(-10, 10), Spoiling())
    harness = TwoInputOperatorHarness(operator, (key, key))
    harness.process_element2(Account(1), 5)
    harness.process_elements1([Account(1), Account(2)], [5, 6])
    assert harness.get_output() == [(1, 1), (2, 1)]


def test_a_window_join_with_one_object_for_all_pairs() -> None:
    buffer: list[int] = []
    function = JoinWindowFunction(lambda one, other: buffer.append(one + other) or buffer)
    assert taken(function.apply("key", None, [(0, 1), (0, 2), (1, 10)]) or ()) == [[11], [11, 12]]
