"""`headwater rescale`: another parallelism for a job that runs."""

from __future__ import annotations

from collections.abc import Sequence

from headwater.cli.running_jobs import add_job_arguments, find_job, run_directory
from headwater.cli.table import duration
from headwater.cli.usage import Parser
from headwater.runtime.job.control_client import ask


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
    given = parser.parse_args(list(arguments))
    directory = run_directory(given.state_dir)
    card = find_job(directory, given.job)
    before = ask(directory, card, "status")["parallelism"]
    seconds = ask(directory, card, "rescale", parallelism=given.parallelism)
    after = ask(directory, card, "status")["parallelism"]
    print(f"job '{card.name}': parallelism {before} -> {after}; it stood still for {duration(seconds * 1000)}")
    return 0
