"""Which of the servers on one storage leads. The others stand by.

The right to lead is a claim, as for drivers (checkpoint/start/claims.py): the server with the highest one leads, and
every server looks for a higher one before and after whatever it does. That needs no clock, so a leader that was stopped
for an hour is as harmless as one that is dead.

*When* to claim is a matter of time: a leader writes a sign of life beside its claim every second, and a server that
stands by claims when nothing new has come for `LEASE_SECONDS` of its own clock; at once if the leader's process has
ended on this host, or has laid its claim down. If that was wrong, the old leader finds the new claim and stands by.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from headwater.checkpoint.start.claims import DriverClaim
from headwater.checkpoint.storage.local import LocalStorage
from headwater.checkpoint.storage.sealed import BrokenSealError, seal, unseal
from headwater.common.errors import FencedError, HeadwaterError
from headwater.common.machine.processes import start_time
from headwater.server.http_error import HttpError

log = logging.getLogger(__name__)

LEASE_SECONDS: Final = 5.0
BEAT_SECONDS: Final = 1.0
_MAGIC: Final = b"HWLEADER"
_FORMAT_VERSION: Final = 1


class NotLeaderError(HttpError):
    """This server does not lead, so it does nothing. `leader` is the address of the one that does, if it is known.

    A client that gets it as an answer asks again, and is then sent to the leader.
    """

    def __init__(self, leader: str) -> None:
        where = f"ask {leader}" if leader else "nobody leads at the moment; ask again in a few seconds"
        super().__init__(503, f"this server stands by; {where}", {"Retry-After": "1"})
        self.leader = leader


class SignOfLife(msgspec.Struct, frozen=True):
    """What a leader writes beside its claim, again and again."""

    address: str
    host: str
    pid: int
    start_time: str
    count: int
    laid_down: bool = False
    """It leads no more, and knows it."""


class _ServerClaim(DriverClaim):
    def _fenced(self) -> FencedError:
        return FencedError(f"another server leads on {self._storage.url}; this one, claim {self.record.number}, stops")


class Leadership:
    """This server's part in it. `step` is called every now and then by one thread; any thread may `check`."""

    def __init__(self, storage: Path, address: str = "", monotonic: Callable[[], float] = time.monotonic) -> None:
        self._storage = LocalStorage(storage)
        self._directory = storage / "claims"
        self._monotonic = monotonic
        self.address = address
        """Where clients find this server. Set before the first `step`."""
        self._sign = SignOfLife(address, socket.gethostname(), os.getpid(), start_time(os.getpid()) or "", 0)
        self._claim: _ServerClaim | None = None
        self._seen: tuple[int, SignOfLife | None] = (0, None)
        self._seen_at = monotonic()
        self._lock = threading.Lock()

    @property
    def leads(self) -> bool:
        """Whether it led when it last looked. Who wants to act on it must `check`."""
        return self._claim is not None

    @property
    def name(self) -> str:
        return f"{self.address} (pid {self._sign.pid} on {self._sign.host})"

    def check(self) -> None:
        """Raise NotLeaderError unless this server leads right now."""
        claim = self._claim
        if claim is not None:
            try:
                claim.check()
                return
            except FencedError as error:
                self._step_down(claim, str(error))
        raise NotLeaderError(self.leader())

    def leader(self) -> str:
        """Return the address of whoever has the highest claim and gives signs of life; empty if nobody does."""
        _, sign = self._look()
        if sign is None or sign.laid_down or self._is_dead(sign) or sign.address == self.address:
            return ""
        return sign.address

    def step(self) -> bool:
        """Give a sign of life, or see whether the leader does; claim if it does not. Return True if this server leads.

        A storage that cannot be read or written is an OSError or a CheckpointError: then nobody knows who leads.
        """
        claim = self._claim
        if claim is not None:
            try:
                claim.check()
                self._give_sign(claim)
                return True
            except FencedError as error:
                self._step_down(claim, str(error))
        if self._is_free():
            claim = _ServerClaim.take(self._storage, "job server")
            self._give_sign(claim)
            with self._lock:
                self._claim = claim
            log.warning("leads on %s with claim %d", self._storage.url, claim.record.number)
            self._forget_signs(claim.record.number)
            with contextlib.suppress(NotLeaderError):
                self.check()
        return self.leads

    def lay_down(self) -> None:
        """Let another server lead at once. Called when this one ends."""
        claim = self._claim
        if claim is None:
            return
        with self._lock:
            self._claim = None
        with contextlib.suppress(OSError):
            self._write(claim.record.number, msgspec.structs.replace(self._sign, laid_down=True))

    def _step_down(self, claim: _ServerClaim, why: str) -> None:
        with self._lock:
            if self._claim is claim:
                self._claim = None
                self._seen_at = self._monotonic()
                log.warning("%s", why)

    # --- signs of life

    def _is_free(self) -> bool:
        """Whether nobody leads, as far as can be told from signs of life."""
        seen = self._look()
        if seen != self._seen:
            self._seen, self._seen_at = seen, self._monotonic()
        number, sign = seen
        if number == 0 or (sign is not None and (sign.laid_down or self._is_dead(sign))):
            return True
        return self._monotonic() - self._seen_at > LEASE_SECONDS

    def _is_dead(self, sign: SignOfLife) -> bool:
        return sign.host == self._sign.host and start_time(sign.pid) != sign.start_time

    def _look(self) -> tuple[int, SignOfLife | None]:
        """The highest claim, 0 if there is none, and the last sign of life of whoever has it."""
        names = self._storage.list("claims")
        number = max((int(name[:12]) for name in names if name.endswith(".claim")), default=0)
        try:
            content = self._storage.read(f"claims/{number:012d}.sign")
            return number, msgspec.msgpack.decode(
                unseal(_MAGIC, (_FORMAT_VERSION,), content, "sign of life"), type=SignOfLife
            )
        except (FileNotFoundError, BrokenSealError, msgspec.MsgspecError):
            return number, None  # not yet, or not readable: then time decides

    def _give_sign(self, claim: _ServerClaim) -> None:
        self._sign = msgspec.structs.replace(self._sign, address=self.address, count=self._sign.count + 1)
        self._write(claim.record.number, self._sign)

    def _write(self, number: int, sign: SignOfLife) -> None:
        with self._storage.write(f"claims/{number:012d}.sign", durable=False) as file:
            file.write(seal(_MAGIC, _FORMAT_VERSION, msgspec.msgpack.encode(sign)))

    def _forget_signs(self, below: int) -> None:
        for name in self._storage.list("claims"):
            if name.endswith(".sign") and int(name[:12]) < below:
                self._storage.delete(f"claims/{name}")


def check_storage(storage: Path) -> None:
    """Make the storage's directories. Raises HeadwaterError if servers could not be kept apart there."""
    try:
        LocalStorage(storage).create(("claims", "jobs", "checkpoints"))
        probe, other = (storage / "claims" / f".{os.getpid()}.{end}" for end in ("probe", "link"))
        probe.touch()
        try:
            os.link(probe, other)
            other.unlink()
        finally:
            probe.unlink()
    except OSError as error:
        raise HeadwaterError(
            f"storage {storage} cannot be used: {error.strerror or error}; expected a directory that this user can "
            "write to, on a file system with hard links"
        ) from error
