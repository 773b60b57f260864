"""`headwater checkpoints`: statistics of a running job's checkpoints, or what a directory retains."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import Any

from headwater.checkpoint.savepoint.history import RetainedCheckpoint, retained_checkpoints
from headwater.cli import remote_jobs
from headwater.cli.running_jobs import JOB_HELP, add_state_directory, find_job, matching, run_directory, shown
from headwater.cli.stored_path import stored_path
from headwater.cli.table import duration, print_table, utc
from headwater.cli.usage import Parser, UsageError
from headwater.common.errors import CheckpointError, HeadwaterError, StorageError
from headwater.runtime.job.control_client import ask
from headwater.runtime.job.run_directory import JobCard

_STATISTICS = (
    "EPOCH",
    "STATUS",
    "TRIGGERED (UTC)",
    "DURATION",
    "SYNC",
    "ASYNC",
    "SLOWEST",
    "FULL BYTES",
    "DELTA BYTES",
)
_REMOTE = ("EPOCH", "STATUS", "TRIGGERED (UTC)", "DURATION", "FULL BYTES", "DELTA BYTES")
_PARTITIONS = ("STAGE", "PARTITION", "ACKNOWLEDGED AFTER", "SYNC", "ASYNC", "FULL BYTES", "DELTA BYTES")
_RETAINED = ("EPOCH", "CREATED (UTC)", "JOB", "PARTITIONS", "FULL BYTES", "DELTA BYTES", "START FROM IT WITH")


def checkpoints(arguments: Sequence[str]) -> int:
    """Show the running job's statistics if there is such a job, else the retained checkpoints of the directory."""
    parser = Parser(
        prog="headwater checkpoints",
        description=(
            "Statistics of the last checkpoints of a running job: how long each took (SYNC: processing stood still; "
            "ASYNC: writing beside it; SLOWEST: between the first partition's acknowledgement and the last one's), how "
            "much it wrote (DELTA) and how much a restore reads (FULL). Of a job that does not run: the checkpoints "
            "that its directory retains."
        ),
    )
    parser.add_argument("job", metavar="JOB|DIR", help=JOB_HELP)
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--epoch", type=int, metavar="N", help="the partitions of this one checkpoint")
    choice.add_argument("--retained", action="store_true", help="what the directory retains, of a running job too")
    choice.add_argument("--json", action="store_true", help="all statistics, for tools")
    remote_jobs.add_server(parser)
    add_state_directory(parser)
    given = parser.parse_args(list(arguments))
    if given.jobmanager is not None:
        return _remote(given)
    directory = run_directory(given.state_dir)
    cards = directory.cards()
    found = matching(cards, given.job)
    if not found:
        _print_retained(given.job, cards)
        return 0
    job = find_job(directory, given.job)
    if given.retained:
        _print_retained_of(job)
        return 0
    statistics = ask(directory, job, "checkpoints")
    if given.json:
        print(json.dumps(statistics, indent=2))
    elif given.epoch is not None:
        _print_partitions(statistics, given.epoch)
    elif statistics:
        _print_statistics(statistics)
    else:
        print("no checkpoint has ended yet")
    return 0


def _remote(given: argparse.Namespace) -> int:
    """A server's answer has less than a job's own: no partitions, and nothing of the directory."""
    if given.epoch is not None or given.retained:
        raise UsageError("headwater checkpoints: --epoch and --retained work on the job's own machine, without -m")
    history = remote_jobs.checkpoints(remote_jobs.client_of(given.jobmanager, "headwater checkpoints"), given.job)
    if given.json:
        print(json.dumps(history, indent=2))
        return 0
    rows = [
        (
            str(each["id"]),
            each["status"].lower(),
            utc(each["trigger_timestamp"]),
            duration(each["end_to_end_duration"]),
            f"{each['state_size']:,}",
            f"{each['checkpointed_size']:,}",
        )
        for each in history
    ]
    print_table(_REMOTE, rows, {"EPOCH", *_REMOTE[3:]})
    return 0


def _print_statistics(statistics: Sequence[dict[str, Any]]) -> None:
    rows = [
        (
            str(each["epoch"]),
            each["status"],
            utc(each["triggered_ms"]),
            *(duration(each[key]) for key in ("duration_ms", "sync_ms", "async_ms", "waiting_for_slowest_ms")),
            f"{each['full_bytes']:,}",
            f"{each['delta_bytes']:,}",
        )
        for each in statistics
    ]
    print_table(_STATISTICS, rows, {"EPOCH", *_STATISTICS[3:]})
    for each in statistics:
        if each["reason"]:
            print(f"\nepoch {each['epoch']}: {each['reason']}")


def _print_partitions(statistics: Sequence[dict[str, Any]], epoch: int) -> None:
    chosen = [each for each in statistics if each["epoch"] == epoch]
    if not chosen:
        known = f"{statistics[0]['epoch']} to {statistics[-1]['epoch']}" if statistics else "none yet"
        raise HeadwaterError(f"no statistics of a checkpoint of epoch {epoch}; there are those of epochs {known}")
    rows = [
        (
            str(part["stage"]),
            str(part["partition"]),
            *(duration(part[key]) for key in ("arrived_ms", "sync_ms", "async_ms")),
            f"{part['full_bytes']:,}",
            f"{part['delta_bytes']:,}",
        )
        for part in chosen[-1]["parts"]
    ]
    print_table(_PARTITIONS, rows, _PARTITIONS)


def _print_retained_of(job: JobCard) -> None:
    if not job.checkpoint_dir:
        raise HeadwaterError(f"job '{job.name}' runs without checkpoints, so it retains none")
    try:
        found = retained_checkpoints(stored_path(job.checkpoint_dir))
    except StorageError:
        raise
    except CheckpointError as error:
        raise HeadwaterError(f"job '{job.name}' retains no checkpoint yet: {error}") from None
    _print_table(job.checkpoint_dir, found)


def _print_retained(where: str, cards: Sequence[JobCard]) -> None:
    try:
        found = retained_checkpoints(stored_path(where))
    except StorageError:
        raise
    except CheckpointError as error:
        jobs = f"the running jobs are {shown(cards)}" if cards else "no job runs"
        raise HeadwaterError(
            f"'{where}' is neither a running job nor a directory with checkpoints: {error}; {jobs}"
        ) from None
    _print_table(where, found)


def _print_table(where: str, found: Sequence[RetainedCheckpoint]) -> None:
    rows = [
        (
            str(each.epoch),
            utc(each.created_ms) if not each.problem else "",
            each.job_name,
            str(each.partitions),
            f"{each.full_bytes:,}",
            f"{each.delta_bytes:,}",
            each.problem or f"-s {where.rstrip('/')}@{each.epoch}",
        )
        for each in found
    ]
    print_table(_RETAINED, rows, {"EPOCH", "PARTITIONS", "FULL BYTES", "DELTA BYTES"})
