"""The job as a program: ``python -m tests.recovery.driver SETTINGS`` runs or resumes it, and prints its progress."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.recovery.job import build
from tests.spark.harness import environment, epochs_of, progress


def main(settings: str) -> None:
    wanted = json.loads(settings)
    conf = epochs_of(wanted["epoch_records"]) | {"restart-strategy.fixed-delay.delay": 0} | wanted["conf"]
    env = environment(2, Path(wanted["checkpoints"]), conf)
    build(env, wanted["records"], wanted["output"])
    client = env.execute_async("recovery")
    client.get_job_execution_result().result()
    print(json.dumps(progress(client)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
