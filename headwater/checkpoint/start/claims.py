"""Who may write to a checkpoint directory: only the driver with the highest claim.

A driver that starts creates `claims/<n>.claim`, where n is one more than the highest number so far; the storage lets
only one driver create each number. Then it reads the newest manifest and creates `claims/<n>.base`, which names the
manifest that it resumes from. Every driver looks for a higher claim *after* it has written a manifest or a base. If
there is one, the driver does nothing more: no commit, no deletion.

So of two drivers one always sees the other: either the old one's manifest was there before the new one read (then it
counts, and is the base), or the new one's claim was there before the old one looked (then the old one commits nothing,
and `base` tells every later reader that this manifest does not count). No clocks, no leases, and a driver that wakes up
after an hour is as harmless as one that never slept. docs/decisions/0006-claims.md has the cases one by one.

What a lost file does: a claim that is gone is made again, so that whoever looks for it still sees that it is not the
last one. A base that is gone is found in the manifests of its driver; if there are none, that driver did nothing.
docs/decisions/0015-missing-files.md has these cases.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import secrets
import socket
import time
from collections.abc import Iterable
from typing import Final, Self, TypeVar

import msgspec

from headwater.checkpoint.manifest import BaseRecord, Manifest, WriterRecord
from headwater.checkpoint.paths import CLAIMS
from headwater.checkpoint.storage.base import CheckpointStorage
from headwater.checkpoint.storage.sealed import BrokenSealError, seal, unseal
from headwater.common.errors import CheckpointError, FencedError

log = logging.getLogger(__name__)

_MAGIC: Final = b"HWCLAIM\0"
_FORMAT_VERSION: Final = 2
"""Version 1 was the same; but where there is a base of version 2 there is a file NEWEST (store.py)."""
_NAME: Final = re.compile(r"(\d{12})\.(claim|base)")


class ClaimRecord(msgspec.Struct, frozen=True):
    """Content of `<n>.claim`: who has the claim. The fenced driver's error shows it."""

    number: int
    run: str
    host: str
    pid: int
    job_name: str
    created_ms: int


_Record = TypeVar("_Record", ClaimRecord, BaseRecord)


class Lineage:
    """Which manifests count: those of the newest driver, up to its base those of the driver before it, and so on."""

    def __init__(self, segments: list[tuple[int | None, int | None, int | None]]) -> None:
        self._segments = segments  # (claim, after epoch, up to epoch), newest first; None: any, no limit

    def counts(self, manifest: Manifest) -> bool:
        """Return True if `manifest` is part of the job's history. If not, its driver was fenced before its commit."""
        if not self._segments:
            return True
        return any(
            claim in (manifest.claim, None)
            and (after is None or manifest.epoch > after)
            and (up_to is None or manifest.epoch <= up_to)
            for claim, after, up_to in self._segments
        )


def read_lineage(storage: CheckpointStorage, manifests: Iterable[Manifest] = ()) -> Lineage:
    """The history as the bases in `storage` tell it, and the `manifests` where one is missing.

    A claim without a base has not done anything yet. `manifests` are all that can be read.
    """
    told = {each.claim: each.writer.base for each in manifests if each.writer is not None}
    listed = {number for number, kind in _listed(storage) if kind == "base"}
    number = max((*listed, *told), default=None)
    segments: list[tuple[int | None, int | None, int | None]] = []
    up_to: int | None = None
    while number is not None:
        if number == 0:  # manifests that were written without a claim
            segments.append((number, None, up_to))
            break
        base = told.get(number)
        if base is None and number not in listed:
            if up_to is None:
                raise CheckpointError(
                    f"{_url(storage, number, 'base')} is missing, and the manifests of that driver, written by an "
                    "earlier version, do not tell what it said. Restore the file from a copy"
                )
            segments.append((None, None, up_to))  # of what is that old nothing else is known
            break
        base = base or _read(storage, number, BaseRecord)
        segments.append((number, base.epoch, up_to))
        if base.epoch is None:
            break
        if base.claim >= number:
            raise CheckpointError(
                f"{_url(storage, number, 'base')} is damaged: it is based on claim {base.claim}. Restore the file from "
                "a copy"
            )
        number, up_to = base.claim, base.epoch
    return Lineage(segments)


def demand_newest(storage: CheckpointStorage) -> bool:
    """Whether some driver made sure that there is a file NEWEST, before it did anything else."""
    return any(_version(storage, number) >= 2 for number, kind in _listed(storage) if kind == "base")


class DriverClaim:
    """This driver's right to write. Call `check` after each write, before anything depends on it."""

    def __init__(self, storage: CheckpointStorage, record: ClaimRecord) -> None:
        self._storage = storage
        self._base: BaseRecord | None = None
        self.record = record

    @classmethod
    def take(cls, storage: CheckpointStorage, job_name: str, above: int = 0) -> Self:
        """Become the driver. From now on all earlier ones are fenced, at their next write at the latest.

        `above` is the highest claim that a manifest knows of.
        """
        run = secrets.token_hex(8)
        while True:
            listed = _listed(storage)
            highest = max(above, *(number for number, _ in listed), 0)
            # There are no gaps between the numbers, so the holder of n only has to look for n + 1.
            lost = set(range(1, highest + 1)) - {number for number, kind in listed if kind == "claim"}
            for number in sorted(lost):
                log.warning("%s was missing, and is made again", _url(storage, number, "claim"))
                with contextlib.suppress(FileExistsError):
                    _create_claim(storage, number, run, job_name)
            try:
                return cls(storage, _create_claim(storage, highest + 1, run, job_name))
            except FileExistsError:
                continue

    def renew(self) -> DriverClaim:
        """Return a new claim for the same driver. Of the old claim's manifests, only those up to the new base count."""
        number = self.check()
        try:
            record = _create_claim(self._storage, number, self.record.run, self.record.job_name)
        except FileExistsError:
            raise self._fenced() from None
        return DriverClaim(self._storage, record)

    @property
    def writer(self) -> WriterRecord:
        return WriterRecord(self.record.number, self.record.run, self.record.host, self.record.pid, self._base)

    def set_base(self, manifest: Manifest | None) -> None:
        """Resume from `manifest`: the newest that counts, as read after this claim was taken."""
        epoch, claim = (None, 0) if manifest is None else (manifest.epoch, manifest.claim)
        self._base = BaseRecord(epoch, claim)
        _write(self._storage, self.record.number, "base", self._base)
        self.check()

    def check(self) -> int:
        """Raise FencedError if another driver has a higher claim. Return the first free claim number.

        Raises CheckpointError if the claims cannot be read: then the caller must not act on what it just wrote.
        The gap may contain our own interrupted renewals.
        """
        number = self.record.number + 1
        while _exists(self._storage, number):
            if _read(self._storage, number, ClaimRecord).run != self.record.run:
                raise self._fenced()
            number += 1
        return number

    def _fenced(self) -> FencedError:
        newest = max(number for number, kind in _listed(self._storage) if kind == "claim")
        other = _read(self._storage, newest, ClaimRecord)
        started = time.strftime("%Y-%m-%d %H:%M:%S %z", time.localtime(other.created_ms / 1000))
        return FencedError(
            f"fenced: job '{other.job_name}' was started again on {self._storage.url} at {started}, by {_who(other)}; "
            f"this driver is {_who(self.record)}. It stops and commits nothing more; give the two jobs different "
            "directories if both were meant to run"
        )


def _who(record: ClaimRecord) -> str:
    return f"pid {record.pid} on host {record.host} (claim {record.number}, run {record.run})"


def _create_claim(storage: CheckpointStorage, number: int, run: str, job_name: str) -> ClaimRecord:
    now_ms = int(time.time() * 1000)
    record = ClaimRecord(number, run, socket.gethostname(), os.getpid(), job_name, now_ms)
    _write(storage, number, "claim", record)
    return record


def _listed(storage: CheckpointStorage) -> list[tuple[int, str]]:
    try:
        names = storage.list(CLAIMS)
    except OSError as error:
        raise _cannot_tell(f"{storage.url}/{CLAIMS} cannot be listed", error) from error
    matches = (_NAME.fullmatch(name) for name in names)
    return [(int(match[1]), match[2]) for match in matches if match]


def _exists(storage: CheckpointStorage, number: int) -> bool:
    try:
        return storage.size(_name(number, "claim")) is not None
    except OSError as error:
        raise _cannot_tell(f"{_url(storage, number, 'claim')} cannot be looked for", error) from error


def _cannot_tell(what: str, error: OSError) -> CheckpointError:
    return CheckpointError(
        f"{what}: {error.strerror or error}; whether another driver has taken over the job is not known, so nothing is "
        "committed. Make the directory readable, and see that its disk is there"
    )


def _name(number: int, kind: str) -> str:
    return f"{CLAIMS}/{number:012d}.{kind}"


def _url(storage: CheckpointStorage, number: int, kind: str) -> str:
    return f"{storage.url}/{_name(number, kind)}"


def _write(storage: CheckpointStorage, number: int, kind: str, record: ClaimRecord | BaseRecord) -> None:
    try:
        storage.write_once(_name(number, kind), seal(_MAGIC, _FORMAT_VERSION, msgspec.msgpack.encode(record)))
    except FileExistsError:
        raise
    except OSError as error:
        raise CheckpointError(
            f"{_url(storage, number, kind)} cannot be written: {error.strerror or error}; make room, or make the "
            "directory writable"
        ) from error


def _version(storage: CheckpointStorage, number: int) -> int:
    """The format of a base; one that cannot be read may be of the newest."""
    try:
        unseal(_MAGIC, (1,), storage.read(_name(number, "base")), "base")
    except (BrokenSealError, OSError):
        return _FORMAT_VERSION
    return 1


def _read(storage: CheckpointStorage, number: int, kind: type[_Record]) -> _Record:
    suffix = "claim" if kind is ClaimRecord else "base"
    file = _url(storage, number, suffix)
    try:
        content = storage.read(_name(number, suffix))
        return msgspec.msgpack.decode(unseal(_MAGIC, (1, _FORMAT_VERSION), content, suffix), type=kind)
    except (BrokenSealError, msgspec.MsgspecError) as error:
        cure = "Restore the file from a copy"
        if kind is BaseRecord:  # otherwise a manifest would have told
            cure += ", or delete it: its driver has no checkpoint here"
        raise CheckpointError(f"{file} is damaged: {error}. {cure}") from error
    except OSError as error:
        raise _cannot_tell(f"{file} cannot be read", error) from error
