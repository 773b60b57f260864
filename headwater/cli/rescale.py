"""`headwater rescale`: another parallelism for a job that runs."""

from __future__ import annotations

import time
from collections.abc import Sequence

from headwater.cli import remote_jobs
from headwater.cli.remote_jobs import add_server
from headwater.cli.running_jobs import add_job_arguments, find_job, run_directory
from headwater.cli.table import duration
from headwater.cli.usage import Parser
from headwater.common.errors import HeadwaterError
from headwater.runtime.job.control_client import ask
from headwater.runtime.job.run_directory import JobCard, RunDirectory

_NEXT_EPOCH_SECONDS = 30
"""How long to wait for the next epoch. A job without input has none."""
_POLL_SECONDS = 0.05


def rescale(arguments: Sequence[str]) -> int:
    """Rescale between two epochs, and say how long the job stood still."""
    parser = Parser(
        prog="headwater rescale",
        description=(
            "Change the parallelism of a running job between two epochs; its process stays. Operators whose "
            "parallelism the program sets keep it."
        ),
    )
    add_job_arguments(parser)
    parser.add_argument("-p", "--parallelism", metavar="N", type=int, required=True, help="from 1 to max parallelism")
    add_server(parser)
    given = parser.parse_args(list(arguments))
    if given.jobmanager is not None:
        client = remote_jobs.client_of(given.jobmanager, "headwater rescale")
        return remote_jobs.rescale(client, given.job, given.parallelism)
    directory = run_directory(given.state_dir)
    card = find_job(directory, given.job)
    before = ask(directory, card, "status")["parallelism"]
    asked = time.monotonic()
    seconds = ask(directory, card, "rescale", parallelism=given.parallelism)
    if seconds == 0:
        if before == given.parallelism:
            print(f"job '{card.name}' has parallelism {before} already; nothing was done")
        else:
            print(f"job '{card.name}' keeps parallelism {before}: the program sets it; nothing was done")
        return 0
    after = ask(directory, card, "status")
    print(
        f"job '{card.name}': parallelism {before} -> {after['parallelism']}; it stood still for "
        f"{duration(seconds * 1000)}",
        flush=True,
    )
    if _next_epoch(directory, card, after["progress"]["epoch"]):
        print(f"the next epoch was complete {duration((time.monotonic() - asked) * 1000)} after the request")
    return 0


def _next_epoch(directory: RunDirectory, card: JobCard, epoch: int) -> bool:
    """Wait for a complete epoch after the rescale: it starts the new slots. Return False if none comes soon."""
    deadline = time.monotonic() + _NEXT_EPOCH_SECONDS
    while time.monotonic() < deadline:
        try:
            if ask(directory, card, "status")["progress"]["epoch"] > epoch:
                return True
        except HeadwaterError:
            return False  # the job has ended meanwhile
        time.sleep(_POLL_SECONDS)
    return False
