"""`headwater logs JOB`: what a job's driver printed."""

from __future__ import annotations

import codecs
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

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
    log = _remote(given.jobmanager, given.job) if given.jobmanager is not None else _local(given.state_dir, given.job)
    position = max(0, log.size() - given.lines * _BYTES_PER_LINE)
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    content = log.read(position)
    _print("".join(decoder.decode(content).splitlines(keepends=True)[-given.lines :]))
    while given.follow:
        time.sleep(_POLL_SECONDS)
        position += len(content)
        content = log.read(position)
        _print(decoder.decode(content))
        if not content and log.size() < position:
            position = 0  # somebody has emptied it
    return 0


def _print(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


class _Log(NamedTuple):
    size: Callable[[], int]
    read: Callable[[int], bytes]
    """Read from a position to the end."""


def _local(state_dir: str | None, wanted: str) -> _Log:
    directory = run_directory(state_dir)
    card = find_job(directory, wanted)
    path = ask(directory, card, "describe")["log_file"]
    if path is None:
        raise HeadwaterError(
            f"job '{card.name}' (pid {card.pid}) prints to a terminal or a pipe, so there is no log file"
        )

    def read(position: int) -> bytes:
        with Path(path).open("rb") as file:
            file.seek(position)
            return file.read()

    return _Log(lambda: Path(path).stat().st_size, read)


def _remote(address: str, wanted: str) -> _Log:
    client = remote_jobs.client_of(address, "headwater logs")
    job = f"/jobs/{remote_jobs.find(client, wanted)}"

    def size() -> int:
        return sum(int(each["size"]) for each in client.get(f"{job}/logs")["logs"])

    return _Log(size, lambda position: client.content(f"{job}/log", begin=position))
