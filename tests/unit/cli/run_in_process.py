"""Runs a program's job in this process, without Spark, until its sources have nothing more: `DIR program.py [args]`.

What the job would do is done by the real coordinator and slots; it resumes from the newest checkpoint in DIR.
"""

from __future__ import annotations

import sys

from headwater.checkpoint.paths import CheckpointLayout
from headwater.checkpoint.store import ManifestStore
from headwater.cli.program_plan import plan_of_program
from headwater.cli.run_arguments import parse_run_arguments
from headwater.runtime.epoch.decisions import Run
from headwater.runtime.epoch.restart_policy import NoRestart
from headwater.runtime.epoch.sizing import EpochSizer
from headwater.runtime.job.coordinator import Coordinator
from tests.unit.runtime.in_process_engine import InProcessEngine


def run(directory: str, arguments: list[str]) -> int:
    job, code = plan_of_program(parse_run_arguments(arguments))
    if job is None:
        return code
    plan = job.plan
    layout = CheckpointLayout(directory)
    layout.create()
    engine = InProcessEngine(plan, layout)
    coordinator = Coordinator(
        plan, "job", engine, ManifestStore(layout), NoRestart(), EpochSizer(10_000, 100, 100), retained=2
    )
    latest = ManifestStore(layout).latest()
    if latest is not None:
        coordinator.resume(latest, latest.incarnation + 1)
    records = 1
    while records:
        run = Run(cut=coordinator.checkpoints.in_flight is None)
        records = coordinator.run_epoch(coordinator.plan_epoch(run, coordinator.stamp()))
    coordinator.settle_checkpoint()
    return 0


if __name__ == "__main__":
    sys.exit(run(sys.argv[1], sys.argv[2:]))
