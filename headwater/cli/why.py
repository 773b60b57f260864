"""`headwater why`: why a running job emits nothing."""

from __future__ import annotations

import json
from collections.abc import Sequence

from headwater.cli import remote_jobs
from headwater.cli.running_jobs import add_job_arguments, find_job, run_directory
from headwater.cli.table import shown
from headwater.cli.usage import Parser
from headwater.runtime.job.control_client import ask


def why(arguments: Sequence[str]) -> int:
    """Print the causes, the most likely first, and what to do about each."""
    parser = Parser(
        prog="headwater why",
        description=(
            "Why is there no output? Says where the records of a running job stop: a silent source, a split that holds "
            "the watermark, a window that is not over, a filter that lets nothing pass, a checkpoint or a commit that "
            "fails."
        ),
    )
    add_job_arguments(parser)
    parser.add_argument("--json", action="store_true", help="the causes, for tools")
    remote_jobs.add_server(parser)
    given = parser.parse_args(list(arguments))
    if given.jobmanager is not None:
        causes = remote_jobs.why(remote_jobs.client_of(given.jobmanager, "headwater why"), given.job)
    else:
        directory = run_directory(given.state_dir)
        causes = ask(directory, find_job(directory, given.job), "why")
    if given.json:
        print(json.dumps(causes, indent=2))
        return 0
    for number, cause in enumerate(causes, 1):
        print(f"{number}. {cause['cause']}: {shown(cause['text'])}\n   -> {shown(cause['cure'])}")
    return 0
