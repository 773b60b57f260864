"""The run that all others are compared with is itself right, and is long enough to be killed in the middle."""

from __future__ import annotations

from collections import Counter

from tests.recovery.job import expected
from tests.recovery.runs import Run, assert_same


def test_it_gives_what_a_plain_loop_gives(unfailed: Run, unfailed_lines: Counter[str]) -> None:
    assert_same(unfailed_lines, expected(unfailed.records))


def test_nothing_failed_and_nothing_is_left(unfailed: Run) -> None:
    progress = unfailed.progress()
    assert progress["restarts"] == 0 and progress["restored_slots"] == 0
    assert not unfailed.pending_files()
    unfailed.wait_until(lambda: not unfailed.processes(), "all processes to end", seconds=30)


def test_it_writes_full_snapshots_too(unfailed: Run) -> None:
    """Otherwise restores would only be tried on chains of deltas."""
    end = unfailed.latest()
    assert end is not None and end.epoch >= 30
    chains = [record.snapshots for record in end.partitions if record.snapshots]
    assert len(chains) == 4, "two stages with two slots each"
    assert all(chain[0].kind == "full" for chain in chains)
