"""`headwater info program.py`: the plan of a program, in the JSON that Flink's plan visualiser draws."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence

from headwater.cli.program_plan import plan_of_program
from headwater.cli.run_arguments import parse_run_arguments
from headwater.graph.describe import to_json


def info(arguments: Sequence[str]) -> int:
    """Run the program up to its execute(), and print the plan of its job. Takes the options of headwater run."""
    given = parse_run_arguments(arguments, "headwater info")
    with contextlib.redirect_stdout(sys.stderr):  # what the program prints is not part of the answer
        job, code = plan_of_program(given)
    if job is None:
        return code
    print(f"{' Execution Plan '.center(62, '-')}\n{to_json(job.plan)}\n{'-' * 62}")
    return 0
