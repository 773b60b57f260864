"""`headwater stop` and `headwater cancel`: end a running job, with a savepoint or without one."""

from __future__ import annotations

from collections.abc import Sequence

from headwater.checkpoint.storage.base import is_remote, local_path
from headwater.cli import remote_jobs
from headwater.cli.remote_jobs import add_server
from headwater.cli.running_jobs import add_job_arguments, find_job, run_directory
from headwater.cli.usage import FAILURE, Parser
from headwater.common.errors import HeadwaterError
from headwater.runtime.job.control_client import Conversation, JobEnd
from headwater.runtime.job.run_directory import JobCard


def stop(arguments: Sequence[str]) -> int:
    """Stop with a savepoint. Return when the job's directory is free, so that the next job may start."""
    parser = Parser(
        prog="headwater stop",
        description="End a running job with a savepoint, and print where that is. Start from it with headwater run -s.",
    )
    add_job_arguments(parser)
    parser.add_argument(
        "-d",
        "--drain",
        action="store_true",
        help="first tell all operators that their input has ended: windows and timers fire, and are gone afterwards. "
        "For a job that will not go on",
    )
    parser.add_argument(
        "-p",
        "--savepoint-dir",
        "--savepointPath",
        metavar="DIR",
        help="a new directory for the savepoint is made in this one (execution.checkpointing.savepoint-dir)",
    )
    add_server(parser)
    given = parser.parse_args(list(arguments))
    if given.jobmanager is not None:
        client = remote_jobs.client_of(given.jobmanager, "headwater stop")
        return remote_jobs.stop(client, given.job, absolute(given.savepoint_dir), drain=given.drain)
    directory = run_directory(given.state_dir)
    card = find_job(directory, given.job)
    where = absolute(given.savepoint_dir)
    with Conversation(directory, card, "stop", drain=given.drain, directory=where) as conversation:
        path = conversation.answer()
        print(f"Savepoint completed. Path: {path}", flush=True)
        return _say_how_it_ended(card, conversation.end(), "FINISHED", "stopped")


def cancel(arguments: Sequence[str]) -> int:
    """End the job now. Return when its directory is free."""
    parser = Parser(
        prog="headwater cancel",
        description=(
            "End a running job without a savepoint. The epoch under way is given up; started again on its checkpoint "
            "directory, the job goes on from its last checkpoint."
        ),
    )
    add_job_arguments(parser)
    add_server(parser)
    given = parser.parse_args(list(arguments))
    if given.jobmanager is not None:
        return remote_jobs.cancel(remote_jobs.client_of(given.jobmanager, "headwater cancel"), given.job)
    directory = run_directory(given.state_dir)
    card = find_job(directory, given.job)
    with Conversation(directory, card, "cancel") as conversation:
        conversation.answer()
        return _say_how_it_ended(card, conversation.end(), "CANCELED", "cancelled")


def absolute(directory: str | None) -> str | None:
    """Return the absolute path: the job has another working directory."""
    return directory if directory is None or is_remote(directory) else str(local_path(directory))


def _say_how_it_ended(card: JobCard, end: JobEnd, expected: str, done: str) -> int:
    if end.status == expected:
        print(f"job '{card.name}' {done}")
        return 0
    if end.status == "FAILED":
        raise HeadwaterError(f"job '{card.name}' failed meanwhile: {end.problem}")
    print(f"job '{card.name}' has ended ({end.status.lower()})")
    return 0 if end.status == "FINISHED" else FAILURE
