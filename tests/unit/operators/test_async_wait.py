"""Asynchronous requests: order, capacity, timeouts, retries, failures. Requests wait for each other, not for clocks."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest

from headwater.common.errors import ConfigurationError, UserCodeError
from headwater.common.output_tag import OutputTag
from headwater.datastream.async_retry_predicates import (
    empty_result_predicate,
    exception_type_predicate,
    has_exception_predicate,
)
from headwater.operators.async_io.retry import AsyncRetryStrategy
from headwater.operators.async_io.wait import AsyncSettings, AsyncWaitOperator
from headwater.operators.functions.asynchronous import AsyncFunction
from headwater.testing import OneInputOperatorHarness

FOREVER_MS = 3_600_000
SIDE = OutputTag("side")


def harness(
    function: AsyncFunction, *, ordered: bool = True, timeout_ms: int = FOREVER_MS, capacity: int = 100, **more: Any
) -> OneInputOperatorHarness:
    operator = AsyncWaitOperator(AsyncSettings(timeout_ms, capacity, ordered, **more), function)
    return OneInputOperatorHarness(operator, name="lookup")


class LastFirst(AsyncFunction):
    """Requests are done in the opposite order: each waits until all later ones of the batch are."""

    def __init__(self, batch: int) -> None:
        self.batch = batch
        self.under_way = self.most_under_way = 0

    def open(self, runtime_context: Any) -> None:
        self.done: list[int] = []

    async def async_invoke(self, value: int) -> list[Any]:
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        while len(self.done) < self.batch - 1 - value:
            await asyncio.sleep(0)
        self.done.append(value)
        self.under_way -= 1
        return [value * 10] if value % 2 else [value * 10, (SIDE, value)]


@pytest.mark.parametrize(("ordered", "expected"), [(True, [0, 10, 20, 30]), (False, [30, 20, 10, 0])])
def test_order_timestamps_and_side_outputs(ordered: bool, expected: list[int]) -> None:
    with harness(LastFirst(4), ordered=ordered) as lookup:
        lookup.process_elements(range(4), [100, 101, 102, 103])
        assert lookup.get_output_with_timestamps() == [(value, 100 + value // 10) for value in expected]
        assert sorted(lookup.get_side_output(SIDE)) == [0, 2]
        lookup.process_watermark(200)
        assert lookup.get_watermarks() == [200]


def test_records_without_timestamps() -> None:
    with harness(LastFirst(2)) as lookup:
        lookup.process_elements([0, 1])
        assert lookup.get_output_with_timestamps() == [(0, None), (10, None)]


class Counted(AsyncFunction):
    def __init__(self) -> None:
        self.under_way = self.most_under_way = 0

    async def async_invoke(self, value: int) -> list[Any]:
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        for _ in range(5):
            await asyncio.sleep(0)
        self.under_way -= 1
        return [value]


@pytest.mark.parametrize("capacity", [1, 7, 100])
def test_capacity_bounds_the_requests_under_way(capacity: int) -> None:
    function = Counted()
    with harness(function, capacity=capacity) as lookup:
        lookup.process_elements(range(50))
        assert lookup.get_output() == list(range(50))
        assert function.most_under_way == min(capacity, 50)
        assert function.under_way == 0


class Never(AsyncFunction):
    cancelled = 0

    async def async_invoke(self, value: Any) -> list[Any]:
        if value == "answered":
            return [value]
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return []


class Forgiving(Never):
    def timeout(self, value: Any) -> list[Any]:
        return [("timed out", value)]


def test_a_timeout_fails_with_the_operator_and_the_record() -> None:
    function = Never()
    with harness(function, timeout_ms=5) as lookup:
        with pytest.raises(UserCodeError, match=r"operator 'lookup'.*TimeoutError(.|\n)*record: 'lost'"):
            lookup.process_elements(["answered", "lost"])
        assert function.cancelled == 1
        lookup.fail_epoch()
        lookup.process_element("answered")
        assert lookup.get_output() == ["answered"]


def test_the_timeout_hook_may_give_results() -> None:
    function = Forgiving()
    with harness(function, timeout_ms=5) as lookup:
        lookup.process_elements(["lost", "answered"], [1, 2])
        assert lookup.get_output_with_timestamps() == [(("timed out", "lost"), 1), ("answered", 2)]
    assert function.cancelled == 1


class Raises(AsyncFunction):
    def __init__(self) -> None:
        self.cancelled = 0

    async def async_invoke(self, value: Any) -> list[Any]:
        if value == "bad":
            await asyncio.sleep(0)
            raise TimeoutError("the service said no")
        try:
            await asyncio.Event().wait()
        finally:
            self.cancelled += 1
        return []


def test_an_error_ends_the_other_requests_and_is_not_taken_for_a_timeout() -> None:
    function = Raises()
    with harness(function) as lookup:
        with pytest.raises(UserCodeError, match=r"the service said no(.|\n)*record: 'bad'") as caught:
            lookup.process_elements(["waits", "bad", "waits too"])
        assert "async_invoke" in caught.value.user_traceback
        assert function.cancelled == 2


@pytest.mark.parametrize("results", [None, 7, "text"])
def test_results_must_be_a_list(results: Any) -> None:
    class Wrong(AsyncFunction):
        async def async_invoke(self, value: Any) -> Any:
            return results

    with (
        harness(Wrong()) as lookup,
        pytest.raises(UserCodeError, match=r"async_invoke\(\) of Wrong must return a list of results"),
    ):
        lookup.process_element(1)


def test_any_other_iterable_will_do() -> None:
    class Pair(AsyncFunction):
        async def async_invoke(self, value: Any) -> Any:
            return (value, value)

    with harness(Pair(), timeout_ms=0) as lookup:
        lookup.process_element(1)
        assert lookup.get_output() == [1, 1]


# --- retries

IS_OS_ERROR = partial(exception_type_predicate, expected_error_type=OSError)


class Flaky(AsyncFunction):
    """Fails `failures` times per record, or gives nothing, before it answers."""

    def __init__(self, failures: int, error: Exception | None = None) -> None:
        self.failures = failures
        self.error = error
        self.attempts: dict[Any, int] = {}

    async def async_invoke(self, value: Any) -> list[Any]:
        attempt = self.attempts[value] = self.attempts.get(value, 0) + 1
        if attempt <= self.failures:
            if self.error is not None:
                raise self.error
            return []
        return [(value, attempt)]


def fixed(attempts: int, **predicates: Any) -> AsyncRetryStrategy:
    return AsyncRetryStrategy.fixed_delay(
        attempts, 1, predicates.get("result_predicate"), predicates.get("exception_predicate")
    )


@pytest.mark.parametrize(
    ("function", "strategy"),
    [
        (Flaky(2, OSError("reset")), fixed(2, exception_predicate=has_exception_predicate)),
        (Flaky(2, OSError("reset")), fixed(2, exception_predicate=IS_OS_ERROR)),
        (Flaky(2), fixed(2, result_predicate=empty_result_predicate)),
        (Flaky(2), AsyncRetryStrategy.exponential_backoff(3, 1, 2, 2.0, empty_result_predicate, None)),
    ],
)
def test_a_request_is_tried_again(function: Flaky, strategy: AsyncRetryStrategy) -> None:
    with harness(function, retry_strategy=strategy) as lookup:
        lookup.process_elements(["a", "b"])
        assert lookup.get_output() == [("a", 3), ("b", 3)]


def test_what_is_not_worth_a_retry_fails_at_once() -> None:
    function = Flaky(1, ValueError("bad request"))
    only_os = fixed(5, exception_predicate=IS_OS_ERROR)
    with harness(function, retry_strategy=only_os) as lookup:
        with pytest.raises(UserCodeError, match="bad request"):
            lookup.process_element("a")
        assert function.attempts == {"a": 1}


def test_the_last_attempt_counts() -> None:
    with harness(Flaky(9), retry_strategy=fixed(2, result_predicate=empty_result_predicate)) as lookup:
        lookup.process_element("a")
        assert lookup.get_output() == []
    function = Flaky(9, OSError("down"))
    with harness(function, retry_strategy=fixed(2, exception_predicate=has_exception_predicate)) as lookup:
        with pytest.raises(UserCodeError, match="down"):
            lookup.process_element("a")
        assert function.attempts == {"a": 3}


def test_the_timeout_is_for_all_attempts_together() -> None:
    class Patient(Flaky):
        def timeout(self, value: Any) -> list[Any]:
            return [("gave up", self.attempts[value] > 1)]

    strategy = AsyncRetryStrategy.fixed_delay(1_000_000, 1, empty_result_predicate, None)
    with harness(Patient(1_000_000), timeout_ms=30, retry_strategy=strategy) as lookup:
        lookup.process_element("a")
        assert lookup.get_output() == [("gave up", True)]


def test_the_time_between_attempts() -> None:
    growing = AsyncRetryStrategy.exponential_backoff(9, 100, 1000, 3.0, None, None)
    assert [growing.get_backoff_time_millis(attempt) for attempt in (1, 2, 3, 4, 2, 1)] == [
        100, 300, 900, 1000, 300, 100
    ]  # fmt: skip
    assert [fixed(3).can_retry(attempt) for attempt in (1, 3, 4)] == [True, True, False]
    assert fixed(3).get_backoff_time_millis(3) == 1
    assert not AsyncRetryStrategy.no_restart().can_retry(1)


@pytest.mark.parametrize("arguments", [(0, 1), (1, 0), (True, 1), ("3", 1)])
def test_strategies_refuse_what_makes_no_sense(arguments: Any) -> None:
    with pytest.raises(ConfigurationError, match="above zero"):
        AsyncRetryStrategy.fixed_delay(*arguments, None, None)


# --- epochs


def test_a_failed_epoch_is_replayed_with_all_its_requests() -> None:
    function = Counted()
    calls: list[int] = []
    invoke = function.async_invoke

    async def noted(value: int) -> list[Any]:
        calls.append(value)
        return await invoke(value)

    function.async_invoke = noted  # type: ignore[method-assign]
    with harness(function) as lookup:
        lookup.process_elements([1, 2])
        lookup.snapshot()
        lookup.process_elements([3])
        lookup.fail_epoch()
        lookup.process_elements([3])
        snapshot = lookup.snapshot()
    assert lookup.get_output() == [1, 2, 3]
    assert calls == [1, 2, 3, 3]
    assert snapshot.sections == ()
