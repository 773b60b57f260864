"""What every source must keep: run it on a source of your own.

    @pytest.mark.parametrize("check", SOURCE_CHECKS, ids=lambda check: check.__name__)
    def test_my_source(check): check(SourceCase(lambda: MySource(...), records=[...]))

A reader may be thrown away after any batch and opened again at its position, in another process, by a source that was
pickled on the way: together they read every record once. The checks are for bounded sources: give an unbounded one an
end for them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import cloudpickle

from headwater.common.connector import Source, Split, TimedBatch


@dataclass
class SourceCase:
    """A source and what is in it."""

    make: Callable[[], Source]
    """Makes the source, as the program does that is started again."""
    records: list[Any]
    """All of them, in order for each split."""
    splits: int | None = None
    """How many there are at parallelism 2."""


def countable(records: list[Any]) -> Counter[str]:
    return Counter(map(repr, records))


def read_in_task(source: Source, split: Split, position: Any, budget: int, batch: int) -> tuple[list[Any], Any, bool]:
    """What one epoch does with one split: everything crosses a pickle on its way to the task, and back."""
    planned = source.plan_read(split, position, budget)
    there, split_there, position_there = cloudpickle.loads(cloudpickle.dumps((source, planned, position)))
    reader = there.open_reader(split_there, position_there)
    records: list[Any] = []
    ended = False
    try:
        while len(records) < budget:
            got = reader.read_batch(min(batch, budget - len(records)))
            if got is None:
                ended = True
            if not got:
                break
            assert len(got) <= min(batch, budget - len(records)), "read_batch returned more than it was asked for"
            if isinstance(got, TimedBatch):
                assert len(got.timestamps) == len(got), "a TimedBatch needs a timestamp, or None, for each record"
            records += got
        return records, cloudpickle.loads(cloudpickle.dumps(reader.position())), ended
    finally:
        reader.close()


def read_split(source: Source, split: Split, budget: int, batch: int) -> list[Any]:
    records: list[Any] = []
    position = None
    for _ in range(10_000):
        got, position, ended = read_in_task(source, split, position, budget, batch)
        records += got
        if ended:
            return records
    raise AssertionError("the split never ends")


def epochs_of_any_size_read_every_record_once(case: SourceCase) -> None:
    """However an epoch is cut, all epochs together read every record once."""
    for budget, batch in ((1, 1), (7, 3), (10, 10), (100_000, 4)):
        _read_in_epochs(case, budget, batch)


def _read_in_epochs(case: SourceCase, budget: int, batch: int) -> None:
    source = case.make()
    splits = source.discover_splits(2, frozenset())
    assert case.splits is None or len(splits) == case.splits
    read = [record for split in splits for record in read_split(source, split, budget, batch)]
    assert countable(read) == countable(case.records)
    if len(splits) == 1:
        assert read == case.records


def resuming_at_each_position_gives_exactly_the_rest(case: SourceCase) -> None:
    source = case.make()
    for split in source.discover_splits(2, frozenset()):
        everything = read_split(source, split, 100_000, 1000)
        for cut in range(len(everything) + 1):
            head, position, _ = read_in_task(source, split, None, cut, 5)
            assert head == everything[:cut]
            restarted = case.make()  # the program was started again
            rest, _, ended = read_in_task(restarted, split, position, 100_000, 1000)
            assert rest == everything[cut:]
            assert ended


def an_epoch_that_is_repeated_reads_the_same(case: SourceCase) -> None:
    source = case.make()
    for split in source.discover_splits(2, frozenset()):
        _, position, _ = read_in_task(source, split, None, 4, 4)
        first = read_in_task(source, split, position, 5, 2)
        again = read_in_task(source, split, position, 5, 5)
        assert first[:2] == again[:2]


def a_split_is_offered_once(case: SourceCase) -> None:
    source = case.make()
    ids = [split.split_id for split in source.discover_splits(2, frozenset())]
    assert len(set(ids)) == len(ids)
    assert case.make().discover_splits(5, frozenset(ids)) == []


def split_ids_are_the_same_when_the_program_is_started_again(case: SourceCase) -> None:
    first, second = (case.make().discover_splits(2, frozenset()) for _ in range(2))
    assert [split.split_id for split in first] == [split.split_id for split in second]


def with_parallelism_one_the_order_is_that_of_the_input(case: SourceCase) -> None:
    source = case.make()
    read = [record for split in source.discover_splits(1, frozenset()) for record in read_split(source, split, 9, 4)]
    assert read == case.records


def bounded_sources_say_so(case: SourceCase) -> None:
    assert case.make().bounded


SOURCE_CHECKS: tuple[Callable[[SourceCase], None], ...] = (
    epochs_of_any_size_read_every_record_once,
    resuming_at_each_position_gives_exactly_the_rest,
    an_epoch_that_is_repeated_reads_the_same,
    a_split_is_offered_once,
    split_ids_are_the_same_when_the_program_is_started_again,
    with_parallelism_one_the_order_is_that_of_the_input,
    bounded_sources_say_so,
)
"""What each raises says what the source does not keep."""
