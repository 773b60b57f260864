"""A claimed savepoint goes with the job's first checkpoint; what interrupts that only puts it off."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any

import pytest

from headwater.checkpoint.savepoint.claimed import ClaimedSavepoint, finish_deletion
from headwater.checkpoint.savepoint.savepoint import open_savepoint, write_savepoint
from tests.unit.checkpoint.old_job import VALUE, OldJob


@pytest.fixture
def job(tmp_path: Path) -> OldJob:
    job = OldJob(tmp_path / "job", ["count"], 2)
    job.run_epoch(lambda job: job.of_key("count", 1).get_state(VALUE).update(1))
    return job


@pytest.fixture
def savepoint(job: OldJob, tmp_path: Path) -> Path:
    write_savepoint(job.layout, job.manifest, tmp_path / "sp", durable=False)
    return tmp_path / "sp"


@pytest.fixture
def half(savepoint: Path) -> Path:
    for path in (savepoint / "manifests").iterdir():
        path.unlink()
    return savepoint


def test_it_goes_with_the_first_checkpoint(job: OldJob, savepoint: Path) -> None:
    claimed = ClaimedSavepoint(str(savepoint))
    claimed(job.manifest)
    assert not savepoint.exists()
    write_savepoint(job.layout, job.manifest, savepoint, durable=False)
    claimed(job.manifest)
    assert savepoint.exists(), "another savepoint in the same place"


def test_if_it_cannot_be_deleted_the_next_checkpoint_tries_again(
    job: OldJob, savepoint: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied")

    claimed = ClaimedSavepoint(str(savepoint))
    with monkeypatch.context() as patched, caplog.at_level(logging.WARNING):
        patched.setattr(os, "unlink", refuse)
        claimed(job.manifest)
        claimed(job.manifest)
    assert len(caplog.records) == 1 and "tries again" in caplog.text
    assert savepoint.exists()
    claimed(job.manifest)
    assert not savepoint.exists()


def test_what_is_left_goes_when_the_job_starts_again(half: Path) -> None:
    finish_deletion(str(half))
    assert not half.exists()
    finish_deletion(str(half))


def test_its_manifest_may_have_been_named(half: Path) -> None:
    finish_deletion(str(half / "manifests" / "epoch-000000000000.manifest"))
    assert not half.exists()


def test_a_whole_savepoint_in_that_place_stays(savepoint: Path) -> None:
    finish_deletion(str(savepoint))
    assert open_savepoint(savepoint).is_savepoint


def test_whatever_is_not_a_savepoint_stays(job: OldJob, tmp_path: Path) -> None:
    finish_deletion(str(job.layout.root))
    finish_deletion(f"{job.layout.root}@0")
    assert open_savepoint(job.layout.root).manifest.epoch == job.manifest.epoch
    (tmp_path / "file").write_text("")
    finish_deletion(str(tmp_path / "file"))
    assert (tmp_path / "file").exists()
