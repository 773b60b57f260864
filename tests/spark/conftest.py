"""One Spark for the whole run: the engine reuses the active context by itself, so tests just build jobs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.spark.harness import JobRunner, assert_no_slots_left


@pytest.fixture
def run_job(tmp_path: Path) -> JobRunner:
    """`run_job(build, parallelism, **settings)` runs what `build(env)` returns and gives all its records."""
    return JobRunner(tmp_path)


@pytest.fixture(scope="session", autouse=True)
def no_slots_left_behind(private_state_directory: Path) -> Iterator[None]:
    yield
    assert_no_slots_left()
