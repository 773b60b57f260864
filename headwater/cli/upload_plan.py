"""The plan of a program that a server was given: `python -m headwater.cli.upload_plan STORAGE JOB`.

The program is run up to its first `execute()`. The plan is the only line on the standard output.
"""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path

from headwater.cli.job_driver import run_submission
from headwater.cli.program_plan import PlanMade, PlanningExecutor
from headwater.cli.usage import FAILURE
from headwater.runtime.job.vertices import plan_json
from headwater.server.jobs.job_folder import JobFolder


def main(arguments: list[str]) -> int:
    folder = JobFolder(Path(arguments[0]), arguments[1])
    submission = folder.submission()
    assert submission is not None, "the server wrote it before it started this"
    try:
        with contextlib.redirect_stdout(sys.stderr):
            code = run_submission(folder, submission, PlanningExecutor())
    except PlanMade as made:
        print(json.dumps(plan_json(made.plan, folder.job_id)))
        return 0
    if code == 0:
        print("the program ended without a call of execute(); there is no job to look at", file=sys.stderr)
    return code or FAILURE


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
