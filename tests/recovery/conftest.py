"""Runs that leave nothing behind, and the output of one that nobody disturbs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest

from tests.recovery.runs import Run

RECORDS = 45_000
EPOCH_RECORDS = 1_250
"""36 epochs with data, and the one that ends event time."""


class MakeRun(Protocol):
    def __call__(self, records: int = RECORDS, epoch_records: int = EPOCH_RECORDS, **more: Any) -> Run: ...


@pytest.fixture
def make_run(tmp_path: Path) -> Iterator[MakeRun]:
    """`make_run()` gives a fresh job; all its processes are gone after the test."""
    runs: list[Run] = []

    def make(records: int = RECORDS, epoch_records: int = EPOCH_RECORDS, **more: Any) -> Run:
        runs.append(Run(tmp_path / f"run-{len(runs)}", records, epoch_records, **more))
        return runs[-1]

    yield make
    for run in runs:
        run.stop()


@pytest.fixture(scope="session")
def unfailed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """The job, run once from start to end without a fault."""
    run = Run(tmp_path_factory.mktemp("recovery") / "unfailed", RECORDS, EPOCH_RECORDS)
    try:
        run.finish()
        yield run
    finally:
        run.stop()


@pytest.fixture(scope="session")
def unfailed_lines(unfailed: Run) -> Counter[str]:
    return unfailed.lines()
