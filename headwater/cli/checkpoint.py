"""`headwater checkpoint JOB`: complete a checkpoint of a running job now."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from headwater.cli import remote_jobs
from headwater.cli.running_jobs import add_job_arguments, find_job, run_directory
from headwater.cli.usage import Parser
from headwater.runtime.job.control_client import ask


def checkpoint(arguments: Sequence[str]) -> int:
    """Wait for the checkpoint, and say which it is. Old ones: headwater checkpoints."""
    parser = Parser(
        prog="headwater checkpoint",
        description="Complete a checkpoint of a running job now. headwater checkpoints lists those that there are.",
    )
    add_job_arguments(parser)
    parser.add_argument(
        "-full", "--full", action="store_true", help="as in Flink; here the job decides which snapshots are full"
    )
    remote_jobs.add_server(parser)
    given = parser.parse_args(list(arguments))
    if given.full:
        print("note: the job decides which snapshots are full; this checkpoint is one as configured", file=sys.stderr)
    if given.jobmanager is not None:
        return remote_jobs.checkpoint(remote_jobs.client_of(given.jobmanager, "headwater checkpoint"), given.job)
    directory = run_directory(given.state_dir)
    card = find_job(directory, given.job)
    number = ask(directory, card, "trigger_checkpoint")
    print(f"Checkpoint(CONFIGURED) {number} for job {card.job_id} completed.")
    print("You can resume your program from this checkpoint with the run command.")
    return 0
