"""When a full snapshot is due, which bounds what a restore reads; and a child that cannot write one."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.checkpoint.paths import SnapshotKind
from headwater.checkpoint.snapshot.file import SnapshotRef, write_snapshot
from headwater.common.errors import CheckpointError
from headwater.common.machine.descriptors import wait_any
from headwater.runtime.slot.full_snapshot import (
    MAX_DELTAS,
    MIN_DELTA_BYTES,
    FullSnapshotChild,
    full_snapshot_is_due,
    warn_of_failure,
)
from headwater.state.snapshot.section import Section

MIB = 1 << 20


def ref(kind: SnapshotKind, length: int, epoch: int = 0) -> SnapshotRef:
    return SnapshotRef(f"{kind}-{epoch}", length, 0, epoch, kind, (0, 128))


def chain(full: int, *deltas: int) -> list[SnapshotRef]:
    return [ref("full", full), *(ref("delta", length, epoch + 1) for epoch, length in enumerate(deltas))]


@pytest.mark.parametrize(
    ("snapshots", "due"),
    [
        ([], False),
        (chain(10 * MIB), False),
        (chain(10 * MIB, *[3 * MIB] * 4), False),  # few deltas are read quickly, however large
        (chain(10 * MIB, *[2 * MIB] * 5), False),
        (chain(10 * MIB, *[2 * MIB] * 5, 1), True),
        (chain(10, *[1000] * 39), False),  # below 1 MiB size does not count
        (chain(10, *[1000] * 40), True),
        (chain(10, *[MIB // 5 + 1] * 5), True),
        (chain(0)[1:], False),
    ],
)
def test_when_it_is_due(snapshots: list[SnapshotRef], due: bool) -> None:
    assert full_snapshot_is_due(snapshots) is due


@given(st.integers(0, 20 * MIB), st.lists(st.integers(0, 10 * MIB), max_size=100))
def test_what_a_restore_reads_is_bounded(full: int, deltas: list[int]) -> None:
    """As docs/state-backends.md says: a job that takes every snapshot that is due never has a longer chain."""
    snapshots = chain(full)
    for length in deltas:
        assert not full_snapshot_is_due(snapshots)
        snapshots.append(ref("delta", length, len(snapshots)))
        if full_snapshot_is_due(snapshots):
            before = snapshots[1:-1]
            assert len(before) < MAX_DELTAS
            assert len(before) <= 4 or sum(each.length for each in before) <= max(full, MIN_DELTA_BYTES)
            snapshots = chain(full)


def test_a_child_whose_disk_is_full_leaves_nothing_and_says_so(tmp_path: Path) -> None:
    """The slot goes on with deltas."""

    def write() -> SnapshotRef:
        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))  # of the child only
        sections = [Section("op", "keyed", "s", group, bytes(range(200))) for group in range(10)]
        return write_snapshot(tmp_path / "full", {"epoch": 1, "kind": "full", "key_groups": (0, 10)}, sections)

    child = FullSnapshotChild.start("full", write)
    wait_any([child._pipe], 60)
    assert child.done() and child.result() is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("error", "traceback"), [(CheckpointError("no room left"), False), (KeyError("ours"), True)])
def test_what_is_known_is_said_without_a_traceback(
    error: Exception, traceback: bool, caplog: pytest.LogCaptureFixture
) -> None:
    warn_of_failure("full", error)
    (record,) = caplog.records
    assert record.getMessage() == f"writing a full snapshot failed; deltas go on: {error}"
    assert (record.exc_info is not None) == traceback
