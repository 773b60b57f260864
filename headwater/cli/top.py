"""`headwater top`: the running jobs, or the vertices of one, live in the terminal."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from headwater.cli import remote_jobs
from headwater.cli.list_jobs import described
from headwater.cli.running_jobs import JOB_HELP, add_state_directory, find_job, run_directory
from headwater.cli.table import duration, shown
from headwater.cli.usage import Parser, UsageError
from headwater.common.errors import HeadwaterError
from headwater.runtime.job.control_client import ask
from headwater.runtime.job.run_directory import JobCard, RunDirectory
from headwater.server.client import RestClient

_JOBS = ("ID", "NAME", "STATUS", "UPTIME", "IN/S", "OUT/S", "EPOCH", "LAG", "STATE", "FAILS")
_VERTICES = ("VERTEX", "PAR", "BUSY", "BACKPR", "IN/S", "OUT/S", "LAG", "STATE", "LATE")
_COLOURS = {"RUNNING": "green", "RESTARTING": "yellow", "FAILED": "red", "no answer": "red"}
_UNITS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_ID_LETTERS = 8
_WIDEST_NUMBER = 5

Figures = Mapping[str, Any]
"""A job's answer to `metrics`; empty if it gave none."""


class _Job(NamedTuple):
    job_id: str
    name: str
    status: str
    uptime_ms: float
    figures: Figures


def top(arguments: Sequence[str]) -> int:
    """Show one line per job, or per vertex of one job, again and again, until Ctrl-C."""
    parser = Parser(
        prog="headwater top",
        description=(
            "Watch the running jobs: records in and out per second, duration of an epoch, how far event time is "
            "behind the clock, keys in state, failed attempts. With JOB: its vertices, and what is wrong with them."
        ),
    )
    parser.add_argument("job", metavar="JOB", nargs="?", help=JOB_HELP)
    parser.add_argument("--interval", type=float, metavar="SECONDS", default=1.0, help="how often (1)")
    parser.add_argument("--once", action="store_true", help="print it once, and end")
    remote_jobs.add_server(parser)
    add_state_directory(parser)
    given = parser.parse_args(list(arguments))
    if not given.interval > 0:
        raise UsageError(f"headwater top: --interval {given.interval:g}: expected more than 0")
    if given.jobmanager is not None:
        client = remote_jobs.client_of(given.jobmanager, "headwater top")
        chosen = remote_jobs.find(client, given.job) if given.job is not None else None
        look: Callable[[], Iterator[_Job]] = lambda: _remote(client, chosen)  # noqa: E731
    else:
        directory = run_directory(given.state_dir)
        chosen = find_job(directory, given.job).job_id if given.job is not None else None
        look = lambda: _local(directory, chosen)  # noqa: E731
    draw = _jobs if chosen is None else _vertices
    if given.once:
        Console().print(draw(list(look())))
        return 0
    with Live(draw(list(look())), screen=False, auto_refresh=False) as live:
        while True:
            time.sleep(given.interval)
            live.update(draw(list(look())), refresh=True)


def _local(directory: RunDirectory, chosen: str | None) -> Iterator[_Job]:
    for card in directory.cards():
        if chosen in (None, card.job_id):
            uptime_ms = max(0, time.time() * 1000 - card.started_ms)
            status = described(directory, card)["status"]
            yield _Job(card.job_id, card.name, status, uptime_ms, _figures(directory, card))


def _figures(directory: RunDirectory, card: JobCard) -> Figures:
    try:
        found: Figures = ask(directory, card, "metrics", within_seconds=5, since=int(time.time() * 1000))
    except HeadwaterError:
        return {}  # it has just ended, or hangs
    return found


def _remote(client: RestClient, chosen: str | None) -> Iterator[_Job]:
    for job in client.get("/jobs/overview")["jobs"]:
        if job["state"] in remote_jobs.ENDED or chosen not in (None, job["jid"]):
            continue
        try:
            figures = client.get(f"/jobs/{job['jid']}/live")
        except HeadwaterError:
            figures = {}
        yield _Job(job["jid"], job["name"], job["state"], job["duration"], figures)


def _jobs(jobs: Sequence[_Job]) -> Table:
    table = _table(_JOBS, left=3, others=72, caption=f"{len(jobs)} job{'' if len(jobs) == 1 else 's'}")
    for job in jobs:
        found = job.figures.get("job", {})
        status = Text(job.status, style=_COLOURS.get(job.status, ""))
        epoch_ms = found.get("epochDuration")
        table.add_row(
            job.job_id[:_ID_LETTERS],
            Text(shown(job.name)),
            status,
            _about(job.uptime_ms),
            *(_number(found.get(name)) for name in ("numRecordsInPerSecond", "numRecordsOutPerSecond")),
            "-" if epoch_ms is None else duration(epoch_ms),
            _lag(found),
            *(_number(found.get(name)) for name in ("stateEntries", "numRestarts")),
        )
    return table


def _vertices(jobs: Sequence[_Job]) -> Group:
    if not jobs:
        return Group(Text("the job does not run any more"))
    (job,) = jobs[:1]
    table = _table(_VERTICES, left=1, others=54, caption=f"{shown(job.name)} ({job.status}), {duration(job.uptime_ms)}")
    for vertex in job.figures.get("vertices", {}).values():
        found = vertex["aggregate"]
        table.add_row(
            Text(shown(vertex["name"])),
            str(vertex["parallelism"]),
            *(_share(found.get(f"{name}TimeMsPerSecond.max")) for name in ("busy", "backPressured")),
            *(_number(found.get(f"numRecords{way}PerSecond")) for way in ("In", "Out")),
            _lag(found),
            *(_number(found.get(name)) for name in ("stateEntries", "numLateRecordsDropped")),
        )
    findings = [Text(f"{each['cause']}: {shown(each['text'])}", "yellow") for each in job.figures.get("findings", ())]
    return Group(table, *findings)


def _table(columns: Sequence[str], left: int, others: int, caption: str) -> Table:
    """A table whose name is cut before a number is. `left`: columns of words; `others`: room for all but the name."""
    table = Table(
        box=None, padding=(0, 1), pad_edge=False, caption=f"{caption}, {time.strftime('%H:%M:%S')}; Ctrl-C ends"
    )
    for number, column in enumerate(columns):
        table.add_column(
            column,
            justify="left" if number < left else "right",
            no_wrap=True,
            overflow="ellipsis",
            min_width=max(len(column), _WIDEST_NUMBER if column in ("IN/S", "LAG") else 0),
            max_width=max(len(column), Console().width - others) if column in ("NAME", "VERTEX") else None,
        )
    return table


def _number(value: float | None) -> str:
    """`987`, `12.3k`, `4.56M`: never wider than five letters."""
    if value is None:
        return "-"
    for size, unit in _UNITS:
        if abs(value) >= size:
            scaled = value / size
            return f"{scaled:.{2 if scaled < 10 else 1 if scaled < 100 else 0}f}{unit}"
    return f"{value:.0f}"


def _share(ms_per_second: float | None) -> str:
    return "-" if ms_per_second is None else f"{ms_per_second / 10:.0f}%"


def _lag(found: Mapping[str, float]) -> str:
    lag_ms = found.get("watermarkLag")
    return "-" if lag_ms is None else _about(max(0, lag_ms))


def _about(milliseconds: float) -> str:
    """A duration in one unit: `950 ms`, `12 min`, `3 d`."""
    return " ".join(duration(milliseconds).split()[:2])
