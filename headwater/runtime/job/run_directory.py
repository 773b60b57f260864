"""The jobs that this user runs on this machine: one private directory with a card and a socket for each job.

Whoever finds the card of a dead process removes it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import socket
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from headwater.common.machine.processes import alive, start_time
from headwater.common.trusted_directories import check_private, private_directory

_LONGEST_SOCKET_PATH = 100
"""The kernel takes 107 bytes."""
_CURE = "remove it, or choose another headwater.state.dir"


@dataclass(frozen=True)
class JobCard:
    """Describes a running job, for those who look for it."""

    job_id: str
    name: str
    pid: int
    host: str
    started_ms: int
    checkpoint_dir: str
    """Where its checkpoints go; empty if it makes none."""
    key: str = field(default_factory=lambda: secrets.token_hex(4))
    """Distinguishes runs with the same job id."""
    token_digest: str = ""
    """SHA-256 of headwater.job.token; empty if the job has no token of its own."""
    process: str = ""
    """What tells the process from others with its pid (`start_time`); empty where that is not known."""

    @property
    def file_stem(self) -> str:
        return f"{self.job_id}-{self.key}"

    @property
    def is_here(self) -> bool:
        return self.host == socket.gethostname()

    @property
    def is_dead(self) -> bool:
        """Whether its process has certainly ended. Of one on another host nobody knows here."""
        if not self.is_here:
            return False
        return start_time(self.pid) != self.process if self.process else not alive(self.pid)


def token_digest(token: str | None) -> str:
    """Return what is kept of a token to recognise it; nothing of no token."""
    return hashlib.sha256(token.encode()).hexdigest() if token else ""


class RunDirectory:
    """The directory `run` in headwater.state.dir."""

    def __init__(self, state_directory: str) -> None:
        self.path = Path(state_directory).expanduser() / "run"

    def create(self) -> None:
        """Make the directory. Raises ConfigurationError if others could enter it, OSError if it cannot be made."""
        private_directory(self.path, _CURE)

    def publish(self, card: JobCard) -> None:
        """Make the card visible to others. The job must already answer at its socket."""
        descriptor, draft = tempfile.mkstemp(dir=self.path, prefix=".")
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(asdict(card), file)
        os.replace(draft, self._card(card))

    def withdraw(self, card: JobCard) -> None:
        for path in (self._card(card), self.path / self._socket(card)):
            path.unlink(missing_ok=True)

    def cards(self) -> list[JobCard]:
        """Return the cards of all running jobs, the longest running first. Removes cards of dead processes."""
        if not self.path.is_dir():
            return []
        check_private(self.path, _CURE)
        found = []
        for path in self.path.glob("*.json"):
            card = _read(path)
            if card is None:
                continue
            if card.is_dead:
                self.withdraw(card)
                continue
            found.append(card)
        return sorted(found, key=lambda card: (card.started_ms, card.file_stem))

    def listen(self, card: JobCard) -> socket.socket:
        """Return the socket at which the job answers."""
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            with self._short_path(card) as address:
                listener.bind(address)
            listener.listen()
        except BaseException:
            listener.close()
            raise
        return listener

    def connect(self, card: JobCard, blocking: bool = True) -> socket.socket:
        """Return a connection to the job. Raises OSError if nobody answers; if not `blocking`, also if it is slow."""
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.setblocking(blocking)
        try:
            with self._short_path(card) as address:
                connection.connect(address)
        except BaseException:
            connection.close()
            raise
        return connection

    @contextlib.contextmanager
    def _short_path(self, card: JobCard) -> Iterator[str]:
        """Yield a path of the socket that is short enough: if need be, through /proc and an open directory."""
        name = self._socket(card)
        if len(os.fsencode(self.path / name)) <= _LONGEST_SOCKET_PATH:
            yield str(self.path / name)
            return
        directory = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            yield f"/proc/self/fd/{directory}/{name}"
        finally:
            os.close(directory)

    def _card(self, card: JobCard) -> Path:
        return self.path / f"{card.file_stem}.json"

    def _socket(self, card: JobCard) -> str:
        return f"{card.file_stem}.sock"


def _read(path: Path) -> JobCard | None:
    try:
        return JobCard(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None  # its job has just ended, or the file is not a card
