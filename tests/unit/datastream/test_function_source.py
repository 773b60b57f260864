"""A function as a source: read in slices that can be replayed, resumed by skipping."""

from __future__ import annotations

import pickle

import cloudpickle
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.common.connector import drain
from headwater.common.errors import TypeMismatchError
from headwater.datastream.function_source import FunctionSource


def ten():
    yield from range(10)


def split_of(source: FunctionSource):
    (split,) = source.discover_splits(4, frozenset())
    assert source.discover_splits(4, frozenset([split.split_id])) == []
    return split


@given(st.lists(st.integers(1, 7), min_size=1, max_size=12), st.lists(st.booleans(), min_size=12, max_size=12))
def test_slices_of_any_size_with_retries_give_every_record_once(budgets, retried):
    source, position, seen = FunctionSource(ten), None, []
    split = split_of(source)
    for budget, retry in zip(budgets, retried, strict=False):
        if retry:
            source.plan_read(split, position, budget + 2)
        planned = source.plan_read(split, position, budget)
        task_side = pickle.loads(cloudpickle.dumps(source))
        reader = task_side.open_reader(pickle.loads(pickle.dumps(planned)), position)
        seen += [record for batch in drain(reader, 3) for record in batch]
        position = reader.position()
    assert seen == list(range(min(10, sum(budgets))))


def test_a_slice_that_is_not_the_last_is_not_the_end():
    source = FunctionSource(ten)
    reader = source.open_reader(source.plan_read(split_of(source), None, 4), None)
    assert reader.read_batch(100) == [0, 1, 2, 3]
    assert reader.read_batch(100) == []
    reader = source.open_reader(source.plan_read(split_of(source), 4, 100), 4)
    assert reader.read_batch(100) == [4, 5, 6, 7, 8, 9]
    assert reader.read_batch(100) is None


def test_a_resumed_job_skips_what_was_read():
    source = FunctionSource(ten)
    reader = source.open_reader(source.plan_read(split_of(source), 7, 100), 7)
    assert reader.read_batch(100) == [7, 8, 9]


def test_without_plan_read_a_task_reads_by_itself():
    source = FunctionSource(ten)
    reader = source.open_reader(split_of(source), 8)
    assert reader.read_batch(100) == [8, 9]
    assert reader.read_batch(100) is None


def test_the_function_is_called_once_while_the_job_goes_on():
    calls = []

    def counted():
        calls.append(1)
        yield from range(100)

    source = FunctionSource(counted)
    split = split_of(source)
    for position in range(0, 50, 10):
        source.plan_read(split, position, 10)
    assert len(calls) == 1


def test_a_function_that_gives_no_iterable():
    source = FunctionSource(lambda: 5)
    with pytest.raises(TypeMismatchError, match="returned int; it must yield its records"):
        source.plan_read(split_of(source), None, 1)
