"""`headwater top`: the running jobs, live in the terminal."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table

from headwater.cli import remote_jobs
from headwater.cli.list_jobs import described
from headwater.cli.running_jobs import SHORT_ID, add_state_directory, run_directory
from headwater.cli.table import duration, shown
from headwater.cli.usage import Parser, UsageError

_COLUMNS = ("ID", "NAME", "STATUS", "UPTIME", "REC/S", "RECORDS", "EPOCH", "MS", "STATE", "FAILS")
_COLOURS = {"RUNNING": "green", "RESTARTING": "yellow", "FAILED": "red", "no answer": "red"}
Row = tuple[str, ...]


def top(arguments: Sequence[str]) -> int:
    """Show one line per job, again and again, until Ctrl-C."""
    parser = Parser(prog="headwater top", description="Watch the running jobs: rate, epochs, state, restarts.")
    parser.add_argument("--interval", type=float, metavar="SECONDS", default=1.0, help="how often (1)")
    parser.add_argument("--once", action="store_true", help="print it once, and end")
    remote_jobs.add_server(parser)
    add_state_directory(parser)
    given = parser.parse_args(list(arguments))
    if not given.interval > 0:
        raise UsageError(f"headwater top: --interval {given.interval:g}: expected more than 0")
    if given.jobmanager is not None:
        client = remote_jobs.client_of(given.jobmanager, "headwater top")
        rows: Callable[[], list[Row]] = lambda: [_remote_row(job) for job in client.get("/jobs/overview")["jobs"]]  # noqa: E731
    else:
        directory = run_directory(given.state_dir)
        rows = lambda: [_row(described(directory, card)) for card in directory.cards()]  # noqa: E731
    if given.once:
        Console().print(_table(rows()))
        return 0
    with Live(_table(rows()), screen=False, auto_refresh=False) as live:
        while True:
            time.sleep(given.interval)
            live.update(_table(rows()), refresh=True)


def _table(rows: Sequence[Row]) -> Table:
    plural = "" if len(rows) == 1 else "s"
    caption = f"{len(rows)} job{plural}, {time.strftime('%H:%M:%S')}; Ctrl-C ends"
    table = Table(box=None, padding=(0, 1), caption=caption)
    for column in _COLUMNS:
        table.add_column(column, justify="left" if column in _COLUMNS[:3] else "right", no_wrap=True)
    for row in rows:
        colour = _COLOURS.get(row[2], "")
        table.add_row(row[0], row[1], f"[{colour}]{row[2]}[/]" if colour else row[2], *row[3:])
    return table


def _row(job: dict[str, Any]) -> Row:
    progress = job.get("progress") or {}
    uptime = duration(max(0, time.time() * 1000 - job["started_ms"]))
    first = (job["job_id"][:SHORT_ID], _plain(job["name"]), job["status"], uptime)
    if not progress:
        return (*first, *["-"] * 6)
    numbers = (progress["records_per_second"], progress["records_in"], progress["epoch"], progress["epoch_ms"])
    return (*first, *(f"{each:,.0f}" for each in (*numbers, progress["state_entries"], progress["restarts"])))


def _remote_row(job: dict[str, Any]) -> Row:
    return (job["jid"][:SHORT_ID], _plain(job["name"]), job["state"], duration(job["duration"]), *["-"] * 6)


def _plain(name: str) -> str:
    """A job's name without what a terminal, or rich, would take for a command."""
    return shown(name).replace("[", "\\[")
