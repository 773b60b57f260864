"""`headwater stop` and `headwater cancel`: end a running job, with a savepoint or without one."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from headwater.checkpoint.storage.base import is_remote, local_path
from headwater.cli import remote_jobs
from headwater.cli.remote_jobs import add_server
from headwater.cli.running_jobs import JOB_HELP, add_job_arguments, add_state_directory, find_job, run_directory
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
    add_savepoint_arguments(parser)
    add_server(parser)
    given = parser.parse_args(list(arguments))
    note_the_format(given.type)
    where = absolute(given.savepoint_dir)
    if given.jobmanager is not None:
        client = remote_jobs.client_of(given.jobmanager, "headwater stop")
        return remote_jobs.stop(client, given.job, where, drain=given.drain, detached=given.detached)
    directory = run_directory(given.state_dir)
    card = find_job(directory, given.job)
    with Conversation(directory, card, "stop", drain=given.drain, directory=where) as conversation:
        print(remote_jobs.stopping(card.job_id, given.drain, given.detached), flush=True)
        if given.detached:
            return 0
        path = conversation.answer()
        print(f"Savepoint completed. Path: {path}", flush=True)
        return _say_how_it_ended(card, conversation.end(), "FINISHED", f"job '{card.name}' stopped")


def cancel(arguments: Sequence[str]) -> int:
    """End the job now. Return when its directory is free."""
    parser = Parser(
        prog="headwater cancel",
        description=(
            "End a running job without a savepoint. The epoch under way is given up; started again on its checkpoint "
            "directory, the job goes on from its last checkpoint."
        ),
    )
    parser.add_argument("job", metavar="JOB", nargs="?", help=JOB_HELP)
    add_state_directory(parser)
    parser.add_argument(
        "-s",
        "--withSavepoint",
        metavar="DIR",
        nargs="?",
        const="",
        help="as in Flink, where it is deprecated: end it with a savepoint, in DIR or in "
        "execution.checkpointing.savepoint-dir; see headwater stop",
    )
    add_server(parser)
    given = parser.parse_args(list(arguments))
    if given.job is None and given.withSavepoint:  # cancel -s JOB
        given.job, given.withSavepoint = given.withSavepoint, ""
    if given.job is None:
        parser.error("the following arguments are required: JOB")
    if given.withSavepoint is not None:
        return _cancel_with_savepoint(given, absolute(given.withSavepoint or None))
    if given.jobmanager is not None:
        return remote_jobs.cancel(remote_jobs.client_of(given.jobmanager, "headwater cancel"), given.job)
    directory = run_directory(given.state_dir)
    card = find_job(directory, given.job)
    print(f"Cancelling job {card.job_id}.", flush=True)
    with Conversation(directory, card, "cancel") as conversation:
        conversation.answer()
        return _say_how_it_ended(card, conversation.end(), "CANCELED", f"Cancelled job {card.job_id}.")


def _cancel_with_savepoint(given: argparse.Namespace, where: str | None) -> int:
    if given.jobmanager is not None:
        client = remote_jobs.client_of(given.jobmanager, "headwater cancel")
        return remote_jobs.cancel_with_savepoint(client, given.job, where)
    directory = run_directory(given.state_dir)
    card = find_job(directory, given.job)
    print(remote_jobs.cancelling_with_savepoint(card.job_id, where), flush=True)
    with Conversation(directory, card, "stop", drain=False, directory=where) as conversation:
        path = conversation.answer()
        conversation.end()
    print(f"Cancelled job {card.job_id}. Savepoint stored in {path}.")
    return 0


def add_savepoint_arguments(parser: Parser) -> None:
    """Flink's options of a savepoint, wherever one is made."""
    parser.add_argument(
        "-type",
        "--type",
        type=str.lower,
        choices=("canonical", "native"),
        default="canonical",
        help="as in Flink. There is one format, which all state backends read: canonical",
    )
    parser.add_argument(
        "-detached",
        "--detached",
        action="store_true",
        help="do not wait for the savepoint. What becomes of it is in the job's log; of a job of a server, also at "
        "/jobs/:jobid/savepoints/:triggerid",
    )


def note_the_format(chosen: str) -> None:
    if chosen == "native":
        print("note: there is one format of savepoints, which all state backends read: canonical", file=sys.stderr)


def absolute(directory: str | None) -> str | None:
    """Return the absolute path: the job has another working directory."""
    return directory if directory is None or is_remote(directory) else str(local_path(directory))


def _say_how_it_ended(card: JobCard, end: JobEnd, expected: str, done: str) -> int:
    if end.status == expected:
        print(done)
        return 0
    if end.status == "FAILED":
        raise HeadwaterError(f"job '{card.name}' failed meanwhile: {end.problem}")
    print(f"job '{card.name}' has ended ({end.status.lower()})")
    return 0 if end.status == "FINISHED" else FAILURE
