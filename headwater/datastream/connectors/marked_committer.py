"""Delivers spooled output: exactly once to a server that can store a mark together with a batch (`MarkedCommitter`).

The batches of a commit are numbered, and the mark says how far they were delivered. Whoever commits again, after a lost
answer or in another driver, asks for the mark and goes on behind it. The server compares, too: a batch whose number is
not above the mark is not stored, so a driver that was taken for dead cannot deliver anything twice. The rules are
those of docs/decisions/0024-kafka-exactly-once.md.

A server that lost its last writes has an older mark than it had. Each batch says which mark it follows, and the mark of
the last whole commit is noted in checkpoint storage, so a gap is an error, also for another driver.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Final

import msgspec
import xxhash

from headwater.common.errors import ExternalSystemError, HeadwaterError
from headwater.datastream.connectors.spool import Spooled
from headwater.datastream.connectors.spool_committer import SpoolCommitter
from headwater.datastream.connectors.spool_notes import NOTE, first_note, read_note, write_note

NUMBER_BITS: Final = 20
"""Of a mark: the rest is the epoch."""


class MarkNote(msgspec.Struct, frozen=True):
    """Written before the first commit of a job, and kept for as long as there are checkpoints of it."""

    epoch: int
    """Of the first commit."""
    token: str
    """Part of the mark's name (`first_note` says why)."""


class DoneNote(msgspec.Struct, frozen=True):
    """Written after each commit."""

    token: str
    mark: int
    """The server had it."""


class MarkedCommitter(SpoolCommitter):
    """Runs in the driver. `read_mark` and `deliver` are for the server at hand."""

    def __init__(self, owner: str) -> None:
        super().__init__(owner)
        self._visible: dict[str, int] = {}
        """{mark's name: the mark}, as far as it is known since the last error."""
        self._done: dict[str, int] = {}
        """{mark's name: the mark of the last whole commit}: the server must not have less."""

    @abstractmethod
    def read_mark(self, name: str) -> int | None:
        """Return the mark that the server has; None: it has none."""

    @abstractmethod
    def deliver(self, name: str, batch: list[Any], mark: int, after: int) -> int | None:
        """Store the batch and the mark, both or none; nothing if the server's mark is not below `mark`.

        If the server's mark is below `after` (-1: it has none), store nothing and return it.
        """

    @abstractmethod
    def lost(self, name: str, found: int, expected: int) -> HeadwaterError:
        """Return the error to raise: the server had the mark `expected`, and has an older one. Say what to do."""

    def commit(self, committables: list[Any]) -> None:
        for job_id in sorted({spooled.job_id for spooled in committables}):
            # Another job's: this one starts from its checkpoint, and its mark says whether the output is there.
            own = [spooled for spooled in committables if spooled.job_id == job_id]
            self._commit(job_id, own)
            self.forget(own)

    def _commit(self, job_id: str, committables: list[Spooled]) -> None:
        epoch = max(spooled.epoch for spooled in committables)
        note = self._note(job_id, min(committables, key=lambda spooled: spooled.order), epoch)
        uid = xxhash.xxh64_hexdigest(self.context.operator_uid.encode())
        name = f"headwater-{job_id}-{uid}-{note.token}"
        try:
            visible = self._visible.get(name)
            if visible is None:
                visible = self._visible[name] = self._ask(name, job_id, note, epoch)
            complete = (epoch + 1) << NUMBER_BITS
            if visible >= complete:
                return
            pending: list[Any] | None = None
            number = 0
            for batch in self.batches(committables):
                if pending is not None:
                    number += 1
                    self._deliver(name, pending, (epoch << NUMBER_BITS) + number)
                pending = batch
            if pending is not None:
                self._deliver(name, pending, complete)
                self._note_done(job_id, name, DoneNote(note.token, complete))
        except BaseException:
            self._visible.pop(name, None)
            raise

    def _deliver(self, name: str, batch: list[Any], mark: int) -> None:
        visible = self._visible[name]
        if mark <= visible:
            return
        found = self.deliver(name, batch, mark, visible)
        if found is not None and found >= self._done.get(name, -1):
            raise ExternalSystemError(f"{self.owner}: the server lost a part of the commit that is under way")
        if found is not None:
            raise self.lost(name, found, visible)
        self._visible[name] = mark

    def _ask(self, name: str, job_id: str, note: MarkNote, epoch: int) -> int:
        found = self.read_mark(name)
        done = self._done[name] = max(self._done.get(name, -1), self._noted_done(job_id, note.token))
        if done > (-1 if found is None else found):
            raise self.lost(name, -1 if found is None else found, done)
        if found is not None:
            return found
        if epoch > self.context.resumed_epoch or note.epoch >= epoch:
            return -1  # this driver is the first that has this output, or nothing was ever committed before it
        raise HeadwaterError(
            f"{self.owner}: the mark '{name}' is not there any more, so nobody knows whether the output of epoch "
            f"{epoch} is already there. Was the server's data lost? Look whether the output is there; then start the "
            "job from its last checkpoint in a new checkpoint directory, and if it is there, remove it first"
        )

    def _note_done(self, job_id: str, name: str, note: DoneNote) -> None:
        self._done[name] = note.mark
        write_note(self.context.files, _done_name(job_id), msgspec.json.encode(note))

    def _noted_done(self, job_id: str, token: str) -> int:
        noted = read_note(self.context.files, _done_name(job_id))
        note = None if noted is None else msgspec.json.decode(noted, type=DoneNote)
        return note.mark if note is not None and note.token == token else -1

    def _note(self, job_id: str, first: Spooled, epoch: int) -> MarkNote:
        new = MarkNote(epoch, xxhash.xxh64_hexdigest(first.name.encode()) if first.name else "")
        noted = first_note(self.context.files, f"{NOTE}{job_id}.json", msgspec.json.encode(new))
        return msgspec.json.decode(noted, type=MarkNote)


def _done_name(job_id: str) -> str:
    return f"{NOTE}{job_id}-done.json"


class NotedCommitter(SpoolCommitter):
    """For servers that keep no mark: what is delivered is noted in checkpoint storage afterwards.

    A driver that dies between the two delivers an epoch again. So each message has an id that is the same each time
    (`Spooled.identity` and a number): whoever gets it can tell.
    """

    @abstractmethod
    def send(self, job_id: str, epoch: int, committables: list[Spooled]) -> None:
        """Deliver all. May be called again, with the same, if it raises or the driver dies."""

    def commit(self, committables: list[Any]) -> None:
        for job_id in sorted({spooled.job_id for spooled in committables}):
            own = [spooled for spooled in committables if spooled.job_id == job_id]
            epoch = max(spooled.epoch for spooled in own)
            if not self.is_noted("done", job_id, epoch):
                self.send(job_id, epoch, own)
                self.note("done", job_id, epoch)
            self.forget(own)

    def is_noted(self, what: str, job_id: str, epoch: int) -> bool:
        return self.noted(what, job_id, epoch) is not None

    def noted(self, what: str, job_id: str, epoch: int) -> bytes | None:
        """What was noted; None: nothing."""
        return read_note(self.context.files, _note_name(what, job_id, epoch))

    def note(self, what: str, job_id: str, epoch: int, content: bytes = b"") -> None:
        """Remember something of an epoch, and forget it of the epochs before."""
        files, name = self.context.files, _note_name(what, job_id, epoch)
        if files is None:
            return
        write_note(files, name, content or b"{}")
        begin = _note_name(what, job_id, None)
        for old in files.names():
            if old.startswith(begin) and old < name:
                files.delete(old)


def _note_name(what: str, job_id: str, epoch: int | None) -> str:
    return f"{NOTE}{what}-{job_id}-" + ("" if epoch is None else f"{epoch:015d}")
