"""The job as a program: ``python -m tests.recovery.driver SETTINGS`` runs or resumes it, and prints its progress."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

from headwater.datastream import StreamExecutionEnvironment
from tests.recovery import kills
from tests.recovery.job import build
from tests.spark.harness import environment, epochs_of, progress


def run(settings: str, name: str, build: Callable[[StreamExecutionEnvironment, int, str], None]) -> None:
    """Run the job that `build` adds to an environment, and print its progress when it has ended."""
    kills.this_is_the_driver()
    wanted = json.loads(settings)
    conf = epochs_of(wanted["epoch_records"]) | {"restart-strategy.fixed-delay.delay": 0} | wanted["conf"]
    env = environment(2, Path(wanted["checkpoints"]), conf)
    build(env, wanted["records"], wanted["output"])
    client = env.execute_async(name)
    client.get_job_execution_result().result()
    print(json.dumps(progress(client)), flush=True)


if __name__ == "__main__":
    run(sys.argv[1], "recovery", build)
