"""SIGTERM in the middle of a checkpoint: what was complete counts, what was not never was, and the job goes on."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headwater.checkpoint.storage import durable_file
from headwater.checkpoint.storage.durable_file import sync_directory
from tests.unit.runtime.test_coordinator import Job, expected

NUMBER = 4
"""The file of a kind at which the signal comes: a few checkpoints are complete then."""


def terminated_at(kind: str, after: bool) -> None:
    """From now on, SIGTERM comes just before, or just after, the fourth file of that kind gets its name.

    A snapshot has its name from the beginning: it counts when that is made durable.
    """
    named: list[str] = []

    def watched(real: Callable[..., None]) -> Callable[..., None]:
        def give_name(draft: Any, path: Any, **more: Any) -> None:
            named.extend([str(path)] if f"/checkpoints/{kind}" in str(path) else [])
            if len(named) == NUMBER and not after:
                os.kill(os.getpid(), signal.SIGTERM)
            real(draft, path, **more)
            if len(named) == NUMBER:
                os.kill(os.getpid(), signal.SIGTERM)

        return give_name

    if kind == "snapshots/":
        sync = watched(lambda _, path: sync_directory(path))
        durable_file.sync_directory = lambda path: sync(None, f"{path}/")
        return
    os.replace, os.link = watched(os.replace), watched(os.link)  # type: ignore[assignment]


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("kind", ["snapshots/", "manifests/", "COMMITTED"])
def test_a_job_terminated_during_a_checkpoint_goes_on(
    kind: str, after: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Each epoch waits for its checkpoint: otherwise a slow machine has fewer of them.
    monkeypatch.setattr("headwater.runtime.job.checkpoints.GRACE_SECONDS", 60)
    monkeypatch.setattr("headwater.runtime.slot.slot.GRACE_SECONDS", 60)

    def run() -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        job = Job(tmp_path)
        job.start()
        terminated_at(kind, after)
        job.run()

    child = multiprocessing.get_context("fork").Process(target=run)
    child.start()
    child.join()
    assert child.exitcode == -signal.SIGTERM, "the job was over before its checkpoint was hit"
    job = Job(tmp_path)
    seen = len(job.sink.results())
    store = job.store
    store.take_over("job")
    store.remove_orphans()
    job.start()
    assert 0 < job.coordinator.epoch < 9, "it goes on from a checkpoint in the middle"
    job.run()
    assert seen < 100 and job.results() == expected()
    assert not list((tmp_path / "checkpoints").rglob("*.tmp"))
