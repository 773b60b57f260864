"""What CheckpointConfig is told reaches the job: each option from the program to what the coordinator works with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from headwater.common import Configuration
from headwater.datastream import CheckpointConfig
from headwater.runtime.epoch.checkpoint_schedule import CheckpointSchedule, CheckpointSettings
from headwater.runtime.job.launcher import Job
from tests.unit.runtime.in_process_engine import plan_of
from tests.unit.runtime.test_checkpoints import SpanningJob


@pytest.mark.parametrize(
    ("set_it", "expected"),
    [
        (lambda config: config, CheckpointSettings(0, 0, 600_000, 0)),
        (lambda config: config.set_checkpoint_interval(10_000), CheckpointSettings(interval_ms=10_000)),
        (lambda config: config.set_checkpoint_interval(500), CheckpointSettings(interval_ms=0)),  # shorter than epochs
        (lambda config: config.set_min_pause_between_checkpoints(7), CheckpointSettings(min_pause_ms=7)),
        (lambda config: config.set_checkpoint_timeout(70), CheckpointSettings(timeout_ms=70)),
        (lambda config: config.set_tolerable_checkpoint_failure_number(3), CheckpointSettings(tolerable_failures=3)),
        (
            lambda config: config.set_fail_on_checkpointing_errors(False),
            CheckpointSettings(tolerable_failures=2**31 - 1),
        ),
    ],
)
def test_settings_of_a_program_reach_its_job(
    set_it: Callable[[CheckpointConfig], CheckpointConfig], expected: CheckpointSettings
) -> None:
    configuration = Configuration()
    set_it(CheckpointConfig(configuration))
    job = Job(plan_of(lambda env: env.from_collection([1])), configuration, None)
    assert job._checkpoint_settings() == expected


def test_a_pause_is_kept_though_the_interval_is_over() -> None:
    schedule = CheckpointSchedule(CheckpointSettings(interval_ms=10, min_pause_ms=100))
    schedule.cut(0)
    schedule.completed(50)
    assert not schedule.due(149) and schedule.due(150)
    schedule.cut(150)
    schedule.failed(160)
    assert not schedule.due(259) and schedule.due(260), "one that failed has ended, too"


def test_as_many_checkpoints_as_asked_for_are_retained(tmp_path: Path) -> None:
    job = SpanningJob(tmp_path, {1, 3, 5, 7})
    job.start()
    job.run()
    assert len(job.store.epochs()) == 2, "SpanningJob asks for two"
