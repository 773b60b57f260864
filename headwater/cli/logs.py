"""`headwater logs JOB`: what a job's driver printed."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from headwater.cli import remote_jobs
from headwater.cli.running_jobs import add_job_arguments, find_job, run_directory
from headwater.cli.usage import Parser, UsageError
from headwater.common.errors import HeadwaterError
from headwater.runtime.job.control_client import ask

_BYTES_PER_LINE = 400
_POLL_SECONDS = 0.5


def logs(arguments: Sequence[str]) -> int:
    """Print the last lines, and with -f those that come."""
    parser = Parser(prog="headwater logs", description="Print the end of a job's log: what its driver printed.")
    add_job_arguments(parser)
    parser.add_argument("-n", "--lines", type=int, metavar="N", default=50, help="how many lines (50)")
    parser.add_argument("-f", "--follow", action="store_true", help="go on with what comes, until Ctrl-C")
    remote_jobs.add_server(parser)
    given = parser.parse_args(list(arguments))
    if given.lines < 1:
        raise UsageError(f"headwater logs: -n {given.lines}: expected 1 or more")
    read = _remote(given.jobmanager, given.job) if given.jobmanager is not None else _local(given.state_dir, given.job)
    shown = _show(read(given.lines * _BYTES_PER_LINE).splitlines(keepends=True)[-given.lines :])
    while given.follow:
        time.sleep(_POLL_SECONDS)
        new = read(64 * 1024)
        _, found, rest = new.rpartition(shown)
        if rest or not found:
            _show([rest if found else new])
            shown = new[-2_000:]
    return 0


def _show(lines: Sequence[str]) -> str:
    text = "".join(lines)
    sys.stdout.write(text)
    sys.stdout.flush()
    return text[-2_000:]


def _local(state_dir: str | None, wanted: str) -> Callable[[int], str]:
    directory = run_directory(state_dir)
    card = find_job(directory, wanted)
    path = ask(directory, card, "describe")["log_file"]
    if path is None:
        raise HeadwaterError(
            f"job '{card.name}' (pid {card.pid}) prints to a terminal or a pipe, so there is no log file"
        )

    def read(length: int) -> str:
        with Path(path).open("rb") as file:
            file.seek(max(0, Path(path).stat().st_size - length))
            return file.read().decode(errors="replace")

    return read


def _remote(address: str, wanted: str) -> Callable[[int], str]:
    client = remote_jobs.client_of(address, "headwater logs")
    job_id = remote_jobs.find(client, wanted)
    return lambda length: client.text(f"/jobs/{job_id}/log", tail=length)
