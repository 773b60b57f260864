"""HybridSource: one source after the other, splits found when their turn comes, positions that go on anywhere."""

from __future__ import annotations

import pickle
from datetime import timedelta
from pathlib import Path
from typing import Any

import cloudpickle
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.common.connector import Source
from headwater.common.errors import ConfigurationError
from headwater.datastream.connectors.collection import CollectionSource
from headwater.datastream.connectors.data_generator import DataGeneratorSource
from headwater.datastream.connectors.file_system import FileSource, StreamFormat
from headwater.datastream.connectors.hybrid_source import HybridSource
from headwater.datastream.connectors.number_seq import NumberSequenceSource


class Driver:
    """What the driver does with a source: plans each epoch, gives a task a budget, keeps the position."""

    def __init__(self, source: Source) -> None:
        self.source = source
        (self.split,) = source.discover_splits(4, frozenset())
        self.position: bytes | None = None
        self.finished = False

    def epoch(self, budget: int, batch: int = 3) -> list[Any]:
        """The records of one epoch, read by a copy of the source that went to another process."""
        at = None if self.position is None else pickle.loads(self.position)
        planned = self.source.plan_read(self.split, at, budget)
        source, planned = cloudpickle.loads(cloudpickle.dumps((self.source, planned)))
        reader = source.open_reader(planned, at)
        found: list[Any] = []
        while len(found) < budget:
            records = reader.read_batch(min(batch, budget - len(found)))
            if records is None:
                self.finished = True
            if not records:
                break
            found += records
        self.position = pickle.dumps(reader.position())
        reader.close()
        return found

    def all(self, budgets: list[int]) -> list[Any]:
        found: list[Any] = []
        for number in range(200):
            if self.finished:
                return found
            found += self.epoch(budgets[number % len(budgets)])
        raise AssertionError("the source does not end")


def text_source(path: Path) -> Any:
    return FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(path))


@given(st.lists(st.integers(1, 9), min_size=1, max_size=5), st.integers(0, 7), st.integers(1, 7))
def test_records_come_once_and_in_the_order_of_the_sources(budgets: list[int], first: int, last: int) -> None:
    source = (
        HybridSource.builder(CollectionSource([("first", i) for i in range(first)]))
        .add_source(NumberSequenceSource(0, 10))
        .add_source(CollectionSource([("last", i) for i in range(last)]))
        .build()
    )
    expected = [("first", i) for i in range(first)] + list(range(11)) + [("last", i) for i in range(last)]
    assert Driver(source).all(budgets) == expected


def test_splits_of_a_source_are_read_one_after_the_other(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / name).write_text("".join(f"{name}{i}\n" for i in range(4)))
    source = HybridSource.builder(text_source(tmp_path).build()).add_source(NumberSequenceSource(1, 2)).build()
    assert Driver(source).all([5]) == [f"{name}{i}" for name in "abc" for i in range(4)] + [1, 2]


def test_files_are_looked_for_when_their_turn_comes(tmp_path: Path) -> None:
    source = HybridSource.builder(NumberSequenceSource(1, 4)).add_source(text_source(tmp_path).build()).build()
    driver = Driver(source)
    assert driver.epoch(4) == [1, 2, 3, 4]
    (tmp_path / "late").write_text("x\n")
    assert driver.all([10]) == ["x"]


def test_a_watched_directory_at_the_end_goes_on_for_ever(tmp_path: Path) -> None:
    watched = text_source(tmp_path).monitor_continuously(timedelta(seconds=1)).build()
    source = HybridSource.builder(NumberSequenceSource(1, 2)).add_source(watched).build()
    assert not source.bounded
    driver = Driver(source)
    (tmp_path / "a").write_text("a\n")
    found = [record for _ in range(4) for record in driver.epoch(10)]
    (tmp_path / "b").write_text("b\n")
    found += [record for _ in range(3) for record in driver.epoch(10)]
    assert found == [1, 2, "a", "b"] and not driver.finished


def test_positions_do_not_hold_the_records_that_an_epoch_was_given() -> None:
    driver = Driver(HybridSource.builder(CollectionSource(["x" * 1_000] * 100)).build())
    driver.epoch(50)
    assert driver.position is not None and len(driver.position) < 1_000


def test_the_slowest_rate_holds_for_all() -> None:
    slow = DataGeneratorSource(lambda i: i, 5, rate_per_second=10)
    assert HybridSource.builder(NumberSequenceSource(1, 2)).add_source(slow).build().rate_per_second == 10
    assert HybridSource.builder(NumberSequenceSource(1, 2)).build().rate_per_second is None


def test_an_endless_source_before_another_is_refused(tmp_path: Path) -> None:
    watched = text_source(tmp_path).monitor_continuously(timedelta(seconds=1)).build()
    with pytest.raises(ConfigurationError, match="never ends"):
        HybridSource.builder(watched).add_source(NumberSequenceSource(1, 2))


def test_what_is_no_source_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="expected a source"):
        HybridSource.builder("files")  # type: ignore[arg-type]
