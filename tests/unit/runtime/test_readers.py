"""Readers that stay open between epochs: used only where the next epoch begins where they stand."""

from __future__ import annotations

import pickle
from typing import Any

from headwater.common.connector import Source, Split, SplitReader
from headwater.runtime.epoch.messages import SplitAssignment
from headwater.runtime.stage.readers import KeptReaders, OpenReader, Readers

SOURCE_ID = 3


class Numbers(SplitReader):
    def __init__(self, position: int | None) -> None:
        self.next = position or 0
        self.skipped = 0
        self.closed = 0

    def read_batch(self, max_records: int) -> list[Any]:
        first, self.next = self.next, self.next + max_records
        self.skipped += 1
        return list(range(first, self.next))

    def position(self) -> int:
        return self.next

    def counters(self) -> dict[str, int]:
        return {"skipped": self.skipped, "never": 0}

    def close(self) -> None:
        self.closed += 1


class NumberSource(Source):
    def __init__(self) -> None:
        self.opened: list[Numbers] = []

    def discover_splits(self, parallelism: int, known: frozenset[str]) -> list[Split]:
        return []

    def open_reader(self, split: Split, position: Any | None) -> Numbers:
        self.opened.append(Numbers(position))
        return self.opened[-1]


class PlannedSource(NumberSource):
    """The driver puts what an epoch may read into the split."""

    def plan_read(self, split: Split, position: Any | None, budget: int) -> Split:
        return split


def assignment(position: int | None, split: str = "a") -> SplitAssignment:
    return SplitAssignment(Split(split, None), None if position is None else pickle.dumps(position, 5), 10, b"", {})


def read(readers: Readers, source: NumberSource, position: int | None, split: str = "a") -> list[int]:
    """One epoch of three records."""
    opened = readers.open(SOURCE_ID, source, assignment(position, split))
    records: list[int] = opened.reader.read_batch(3) or []
    readers.done(opened, pickle.dumps(opened.reader.position(), 5), finished=False)
    return records


def test_a_reader_is_kept_for_the_epoch_that_begins_where_it_stands() -> None:
    source, readers = NumberSource(), KeptReaders()
    assert [read(readers, source, position) for position in (None, 3, 6)] == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]
    assert len(source.opened) == 1 and not source.opened[0].closed


def test_after_a_failed_attempt_the_same_records_come_again() -> None:
    """The attempt read, but a slot died: the next one begins where the last accepted epoch ended."""
    source, readers = NumberSource(), KeptReaders()
    read(readers, source, None)
    assert read(readers, source, 3) == read(readers, source, 3) == [3, 4, 5]
    assert [reader.closed for reader in source.opened] == [1, 0]


def test_a_failed_first_attempt_begins_at_the_start_again() -> None:
    source, readers = NumberSource(), KeptReaders()
    assert read(readers, source, None) == read(readers, source, None) == [0, 1, 2]


def test_another_process_has_read_on_meanwhile() -> None:
    source, readers = NumberSource(), KeptReaders()
    read(readers, source, None)
    assert read(readers, source, 30) == [30, 31, 32]
    assert [reader.closed for reader in source.opened] == [1, 0]


def test_splits_and_sources_have_readers_of_their_own() -> None:
    source, readers = NumberSource(), KeptReaders()
    read(readers, source, None, "a")
    assert read(readers, source, 0, "b") == [0, 1, 2]
    opened = readers.open(SOURCE_ID + 1, source, assignment(3, "a"))
    assert opened.reader is source.opened[2]
    assert len(list(readers.kept())) == 2


def test_a_reader_whose_data_came_with_the_split_is_used_once() -> None:
    source, readers = PlannedSource(), KeptReaders()
    for position in (None, 3, 6):
        read(readers, source, position)
    assert [reader.closed for reader in source.opened] == [1, 1, 0]


def test_a_split_at_its_end_is_closed_at_once() -> None:
    source, readers = NumberSource(), KeptReaders()
    opened = readers.open(SOURCE_ID, source, assignment(None))
    readers.done(opened, pickle.dumps(0), finished=True)
    assert source.opened[0].closed == 1 and not list(readers.kept())


def test_a_reader_that_raised_is_not_kept() -> None:
    source, readers = NumberSource(), KeptReaders()
    read(readers, source, None)
    readers.failed(readers.open(SOURCE_ID, source, assignment(3)))
    assert source.opened[0].closed == 1 and not list(readers.kept())
    read(readers, source, 3)
    assert len(source.opened) == 2


def test_close_closes_each_reader_once() -> None:
    source, readers = NumberSource(), KeptReaders()
    for split in "abc":
        read(readers, source, None, split)
    readers.close()
    readers.close()
    assert [reader.closed for reader in source.opened] == [1, 1, 1]


def test_counters_are_told_as_differences() -> None:
    """A kept reader counts on from epoch to epoch; each epoch reports its own."""
    reader = Numbers(None)
    opened = OpenReader(reader, SOURCE_ID, "a")
    reader.read_batch(1)
    assert opened.newly_counted() == {"skipped": 1}
    assert opened.newly_counted() == {}
    reader.read_batch(1)
    reader.read_batch(1)
    assert opened.newly_counted() == {"skipped": 2}


def test_counters_start_again_with_a_new_reader() -> None:
    source, readers = NumberSource(), KeptReaders()
    counted = []
    for position in (None, 3, 3):
        opened = readers.open(SOURCE_ID, source, assignment(position))
        opened.reader.read_batch(3)
        counted.append(opened.newly_counted())
        readers.done(opened, pickle.dumps(opened.reader.position(), 5), finished=False)
    assert counted == [{"skipped": 1}] * 3


def test_readers_of_one_epoch_are_closed_with_it() -> None:
    source, readers = NumberSource(), Readers()
    for position in (None, 3):
        read(readers, source, position)
    assert [reader.closed for reader in source.opened] == [1, 1]


def test_a_reader_that_no_epoch_uses_any_more_is_closed() -> None:
    source, readers = NumberSource(), KeptReaders(unused_seconds=0)
    read(readers, source, None, "a")
    read(readers, source, None, "b")
    assert [reader.closed for reader in source.opened] == [1, 0]
    assert read(readers, source, 3, "a") == [3, 4, 5]
    readers.close()
    assert [reader.closed for reader in source.opened] == [1, 1, 1]
