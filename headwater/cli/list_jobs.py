"""`headwater list`: the jobs that run on this machine."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any

from headwater.cli import remote_jobs
from headwater.cli.remote_jobs import add_server
from headwater.cli.running_jobs import SHORT_ID, add_state_directory, run_directory
from headwater.cli.table import duration, print_table
from headwater.cli.usage import Parser
from headwater.common.errors import HeadwaterError
from headwater.runtime.job.control_client import ask
from headwater.runtime.job.run_directory import JobCard, RunDirectory

_HEADERS = ("ID", "NAME", "STATUS", "EPOCH", "RECORDS/S", "UPTIME", "PARALLELISM", "CHECKPOINTS")
_NUMBERS = ("EPOCH", "RECORDS/S", "PARALLELISM")


def list_jobs(arguments: Sequence[str]) -> int:
    """Show one line per job, or with --json all that is known of each."""
    parser = Parser(prog="headwater list", description="List the jobs that you run on this machine.")
    parser.add_argument("--json", action="store_true", help="everything that the jobs tell, for tools")
    parser.add_argument("-r", "--running", action="store_true", help="jobs that run")
    parser.add_argument("-s", "--scheduled", action="store_true", help="jobs that are being started")
    parser.add_argument(
        "-a",
        "--all",
        action="store_true",
        help="also those that have ended: with -m, as only a server knows",
    )
    add_server(parser)
    add_state_directory(parser)
    given = parser.parse_args(list(arguments))
    if given.jobmanager is not None:
        client = remote_jobs.client_of(given.jobmanager, "headwater list")
        return remote_jobs.list_jobs(client, running=given.running, scheduled=given.scheduled, everything=given.all)
    directory = run_directory(given.state_dir)
    jobs = [described(directory, card) for card in directory.cards()]
    if (given.running or given.scheduled) and not given.all:
        wanted = (*(remote_jobs.RUNNING if given.running else ()), *(remote_jobs.SCHEDULED if given.scheduled else ()))
        jobs = [job for job in jobs if job["status"] in wanted]
    if given.json:
        print(json.dumps(jobs, indent=2))
    elif jobs:
        print_table(_HEADERS, [_row(job) for job in jobs], _NUMBERS)
    else:
        print(f"no job runs (looked in {directory.path})")
    return 0


def described(directory: RunDirectory, card: JobCard) -> dict[str, Any]:
    """Return all that a job tells; of one that does not answer, what its card says."""
    known: dict[str, Any] = {
        "job_id": card.job_id,
        "name": card.name,
        "pid": card.pid,
        "host": card.host,
        "started_ms": card.started_ms,
        "checkpoint_dir": card.checkpoint_dir,
    }
    if not card.is_here:
        return known | {"status": f"on {card.host}"}
    try:
        return {**known, **ask(directory, card, "status")}
    except HeadwaterError as error:
        return known | {"status": "no answer", "problem": str(error)}


def _row(job: dict[str, Any]) -> tuple[str, ...]:
    progress = job.get("progress")
    epoch, rate = (progress["epoch"], progress["records_per_second"]) if progress else (-1, None)
    return (
        job["job_id"][:SHORT_ID],
        job["name"],
        job["status"],
        str(epoch) if epoch >= 0 else "-",
        "-" if rate is None else f"{rate:,.0f}",
        duration(max(0, time.time() * 1000 - job["started_ms"])),
        str(job.get("parallelism", "-")),
        job["checkpoint_dir"] or "none",
    )
