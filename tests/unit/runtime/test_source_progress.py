"""Where sources stand, as the driver knows it: budgets, positions, ends, rates."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

from headwater.checkpoint.paths import CheckpointLayout
from headwater.common.connector import Source, Split, SplitReader
from headwater.common.errors import ConfigurationError, UserCodeError
from headwater.datastream.connectors.number_seq import RangeReader
from headwater.graph.plan import JobPlan, SourceSpec
from headwater.runtime.epoch.messages import SourceTask, SplitAck
from headwater.runtime.job.job_sources import JobSources
from headwater.runtime.job.source_progress import BURST_MS, SplitSourceProgress

NOW_MS = 1_700_000_000_000


class Numbers(Source):
    """`splits` ranges of numbers."""

    def __init__(self, splits: int = 1) -> None:
        self.splits = splits
        self.asked_for: list[frozenset[str]] = []

    def discover_splits(self, parallelism: int, known: frozenset[str]) -> list[Split]:
        self.asked_for.append(known)
        return [Split(f"s{n}", n) for n in range(self.splits) if f"s{n}" not in known]

    def open_reader(self, split: Split, position: Any | None) -> SplitReader:
        return RangeReader(range(0 if position is None else position, 100))


class Watched(Numbers):
    bounded = False
    discovery_interval_ms = 1_000


class Limited(Numbers):
    rate_per_second = 100.0


def progress_of(source: Source, parallelism: int = 2, directory: Path | None = None) -> SplitSourceProgress:
    layout = None
    if directory is not None:
        layout = CheckpointLayout(directory)
        layout.create()
    progress = SplitSourceProgress(SourceSpec(1, "numbers", "Numbers", source, parallelism), layout)
    progress.discover(NOW_MS)
    return progress


def ack(split: str, position: int, records: int, *, finished: bool = False, watermark: int = 0) -> SplitAck:
    return SplitAck(1, split, pickle.dumps(position), records, finished, b"", {"out:numbers": watermark})


def budgets(tasks: list[SourceTask]) -> dict[str, int]:
    return {assignment.split.split_id: assignment.budget for task in tasks for assignment in task.splits}


def test_a_budget_is_divided_over_splits_and_splits_over_tasks() -> None:
    progress = progress_of(Numbers(5))
    tasks = progress.plan(10, 52, NOW_MS, final=False)
    assert [(task.index, task.subtask, len(task.splits)) for task in tasks] == [(10, 0, 3), (11, 1, 2)]
    assert budgets(tasks) == {"s0": 11, "s1": 11, "s2": 10, "s3": 10, "s4": 10}


def test_a_budget_smaller_than_the_number_of_splits_starves_none() -> None:
    progress = progress_of(Numbers(splits=3))
    served: set[str] = set()
    for epoch in range(3):
        tasks = progress.plan(0, 1, NOW_MS, final=False)
        served |= {each.split.split_id for task in tasks for each in task.splits if each.budget}
        progress.apply([], epoch)
    assert served == {"s0", "s1", "s2"}


def test_no_more_tasks_than_splits() -> None:
    assert len(progress_of(Numbers(1), parallelism=8).plan(0, 100, NOW_MS, final=False)) == 1


def test_planning_twice_gives_the_same_until_an_epoch_is_applied() -> None:
    progress = progress_of(Numbers(2))
    assert progress.plan(0, 10, NOW_MS, final=False) == progress.plan(0, 10, NOW_MS, final=False)
    assert progress.apply([ack("s0", 5, 5), ack("s1", 3, 3)], 0) == 8
    positions = {a.split.split_id: a.position for t in progress.plan(0, 10, NOW_MS, final=False) for a in t.splits}
    assert positions == {"s0": pickle.dumps(5), "s1": pickle.dumps(3)}


def test_a_bounded_source_is_exhausted_when_its_last_split_is() -> None:
    progress = progress_of(Numbers(2))
    assert not progress.exhausted
    progress.apply([ack("s0", 100, 100, finished=True, watermark=7), ack("s1", 3, 3, watermark=2)], 0)
    assert not progress.exhausted
    progress.apply([ack("s1", 100, 97, finished=True, watermark=5)], 1)
    assert progress.exhausted and not progress.can_read(NOW_MS)
    (marker,) = progress.plan(0, 10, NOW_MS, final=True)
    assert marker.splits == () and marker.final and marker.exhausted
    assert marker.marker == {"out:numbers": 7}, "the highest watermark stands for the source"


def test_a_finished_split_is_never_asked_for_again(tmp_path: Path) -> None:
    source = Watched(2)
    progress = progress_of(source, directory=tmp_path)
    progress.apply([ack("s0", 100, 100, finished=True)], 0)
    progress.discover(NOW_MS + 999)
    assert len(source.asked_for) == 1, "not yet time to look again"
    progress.discover(NOW_MS + 1_000)
    assert source.asked_for[1] == {"s0", "s1"}
    source.splits = 3
    progress.discover(NOW_MS + 2_000)
    assert budgets(progress.plan(0, 10, NOW_MS, final=False)) == {"s1": 5, "s2": 5}


def test_a_split_that_is_offered_again_is_an_error() -> None:
    class Forgetful(Watched):
        def discover_splits(self, parallelism: int, known: frozenset[str]) -> list[Split]:
            return [Split("s0", 0)]

    progress = progress_of(Forgetful())
    with pytest.raises(ConfigurationError, match="'s0' again"):
        progress.discover(NOW_MS + 5_000)


def test_an_error_of_the_source_in_the_driver_names_it_and_the_epoch() -> None:
    class Broken(Numbers):
        def plan_read(self, split: Split, position: Any | None, budget: int) -> Split:
            raise OSError("no such feed")

    progress = progress_of(Broken())
    progress.apply([], 3)
    with pytest.raises(UserCodeError, match="no such feed") as raised:
        progress.plan(0, 10, NOW_MS, final=False)
    assert (raised.value.operator_name, raised.value.epoch) == ("Numbers", 4)


def test_the_rate_is_kept_over_epochs() -> None:
    progress = progress_of(Limited())
    read = 0
    for step in range(0, 5_001, 50):
        allowed = sum(budgets(progress.plan(0, 1_000, NOW_MS + step, final=False)).values())
        read += progress.apply([ack("s0", read + allowed, allowed)], step)
        assert read <= step / 10 + 1
    assert read == pytest.approx(500, abs=5)


def test_after_a_pause_only_a_burst_is_made_up_for() -> None:
    progress = progress_of(Limited())
    progress.plan(0, 1_000, NOW_MS, final=False)
    allowed = budgets(progress.plan(0, 10**6, NOW_MS + 3_600_000, final=False))
    assert allowed == {"s0": 100 * BURST_MS // 1000}
    progress.apply([ack("s0", 200, 200)], 0)
    assert not progress.can_read(NOW_MS + 3_600_000)
    assert progress.can_read(NOW_MS + 3_600_050)


def test_record_and_restore(tmp_path: Path) -> None:
    progress = progress_of(Numbers(3), directory=tmp_path)
    progress.apply(
        [ack("s0", 100, 100, finished=True, watermark=9), ack("s1", 42, 42, watermark=4), ack("s2", 1, 1)], 0
    )
    record = progress.record(0, "a")
    source = Numbers(3)
    restored = SplitSourceProgress(
        progress.spec.__class__(1, "numbers", "Numbers", source, 2), CheckpointLayout(tmp_path)
    )
    restored.restore(record, NOW_MS)
    restored.discover(NOW_MS + 10**9)
    assert source.asked_for == [], "a bounded source has been cut up for good"
    assert restored.plan(0, 10, NOW_MS, final=False) == progress.plan(0, 10, NOW_MS, final=False)
    restored.apply([ack("s1", 100, 58, finished=True), ack("s2", 100, 99, finished=True)], 1)
    assert restored.exhausted


def test_a_watched_source_looks_again_at_once_after_a_restart(tmp_path: Path) -> None:
    progress = progress_of(Watched(1), directory=tmp_path)
    progress.apply([ack("s0", 100, 100, finished=True)], 0)
    source = Watched(2)
    restored = SplitSourceProgress(SourceSpec(1, "numbers", "Numbers", source, 2), CheckpointLayout(tmp_path))
    restored.restore(progress.record(0, "a"), NOW_MS)
    restored.discover(NOW_MS)
    assert source.asked_for == [frozenset({"s0"})]
    assert not restored.exhausted and restored.can_read(NOW_MS)


class Waiting(Watched):
    """Its readers say when they have input, and new splits come."""

    waits = True


def test_a_split_that_nobody_has_opened_is_not_watched() -> None:
    """Otherwise a job that waits for the splits it knows never reads a new one."""
    source = Waiting(splits=1)
    sources = JobSources(JobPlan("job", 128, (SourceSpec(1, "numbers", "Numbers", source, 2),), ()), None)
    progress = sources.splits[0]
    sources.discover(NOW_MS)
    assert not sources.facts(NOW_MS, watching=True).watched
    progress.apply([ack("s0", 3, 3)], 0)
    assert sources.facts(NOW_MS, watching=True).watched
    source.splits = 2
    sources.discover(NOW_MS + 2_000)
    assert not sources.facts(NOW_MS, watching=True).watched
    progress.apply([ack("s0", 3, 0), ack("s1", 0, 0)], 1)
    assert sources.facts(NOW_MS, watching=True).watched
    assert not sources.facts(NOW_MS, watching=False).watched


class Shards(Numbers):
    """`s1` and `s2` come after `s0`, `s3` after both of them."""

    def read_after(self, split: Split) -> tuple[str, ...]:
        after = {"s1": ("s0", "never offered"), "s2": ("s0",), "s3": ("s1", "s2")}
        return after.get(split.split_id, ())


def test_splits_that_come_after_others_wait_for_their_end(tmp_path: Path) -> None:
    def reads(progress: SplitSourceProgress) -> list[str]:
        tasks = progress.plan(0, 10, NOW_MS, final=False)
        return sorted(each.split.split_id for task in tasks for each in task.splits)

    progress = progress_of(Shards(4), directory=tmp_path)
    assert reads(progress) == ["s0"] and progress.open_splits == 4
    progress.apply([ack("s0", 100, 100, finished=True)], 0)
    assert reads(progress) == ["s1", "s2"]
    progress.apply([ack("s1", 100, 100, finished=True), ack("s2", 5, 5)], 1)
    assert reads(progress) == ["s2"] and not progress.exhausted

    record = progress.record(1, "a")
    restored = SplitSourceProgress(SourceSpec(1, "numbers", "Numbers", Shards(4), 2), CheckpointLayout(tmp_path))
    restored.restore(record, NOW_MS)
    assert reads(restored) == ["s2"]
    restored.apply([ack("s2", 100, 95, finished=True)], 2)
    assert reads(restored) == ["s3"] and not restored.exhausted
    restored.apply([ack("s3", 100, 100, finished=True)], 3)
    assert restored.exhausted
