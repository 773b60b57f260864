"""Names become paths only when they cannot lead anywhere else."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.checkpoint.paths import CheckpointLayout, epoch_of_file_name, epoch_of_manifest_name, temporary
from headwater.common.errors import CheckpointError


@given(st.text(max_size=20))
def test_no_attempt_id_leaves_the_snapshot_directory(attempt_id: str) -> None:
    layout = CheckpointLayout("/checkpoints/job")
    try:
        path = layout.new_snapshot(1, 0, 12, attempt_id, "delta")
    except CheckpointError:
        return
    assert path.resolve().parent == layout.snapshots
    assert layout.snapshot(path.name) == path


@pytest.mark.parametrize("name", ["", "..", "../x", "a/b", ".hidden", "a\0b", "x" * 201, "a..b", "ä", "a\n"])
def test_bad_names_are_refused(name: str) -> None:
    with pytest.raises(CheckpointError, match="cannot be part of a file name"):
        CheckpointLayout("/c").snapshot(name)


def test_the_epoch_is_in_the_name_also_while_it_is_temporary() -> None:
    layout = CheckpointLayout("/c")
    path = layout.new_snapshot(1, 3, 12, "a-e7-b", "full")
    assert epoch_of_file_name(path.name) == epoch_of_file_name(temporary(path).name) == 12
    assert epoch_of_file_name("notes.txt") is None


def test_manifest_names_and_epochs_match() -> None:
    layout = CheckpointLayout("/c")
    assert epoch_of_manifest_name(layout.manifest(42).name) == 42
    assert epoch_of_manifest_name(temporary(layout.manifest(42)).name) is None
    with pytest.raises(CheckpointError, match="out of range"):
        layout.manifest(-1)


def test_where_a_directory_may_be(tmp_path: Path) -> None:
    assert CheckpointLayout("file:///c/d").root == Path("/c/d")
    assert CheckpointLayout("file:/c/d").root == Path("/c/d")
    remote = CheckpointLayout("s3://bucket/job/")
    assert str(remote.root) == "s3://bucket/job"
    assert str(remote.manifest(3)) == "s3://bucket/job/manifests/epoch-000000000003.manifest"
    assert CheckpointLayout(str(remote.root)).snapshot("x") == remote.snapshot("x")
    with pytest.raises(CheckpointError, match="is not a path; a streaming DataFrame"):
        _ = remote.spark
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match=r"execution\.checkpointing\.dir"):
        CheckpointLayout(tmp_path / "file").create()
