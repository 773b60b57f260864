"""The base of committers of spooled output."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

from headwater.common.connector import Committer, CommitterContext
from headwater.datastream.connectors.spool import Spooled, read_spool
from headwater.datastream.connectors.spool_notes import NOTE


class Named(Protocol):
    """Output in a file of this name; "": in the committable itself."""

    @property
    def name(self) -> str: ...


class SpoolCommitter(Committer):
    """Knows the files of the output."""

    def __init__(self, owner: str) -> None:
        self.owner = owner
        """Whose output it is, for errors."""
        self.context = CommitterContext("job", "sink", "sink")

    def open(self, context: CommitterContext) -> None:
        self.context = context
        if context.resumed_epoch < 0:
            self.check()

    def check(self) -> None:
        """The job is new: raise if the server is not there, so that the error comes before hours of work."""

    def batches(self, committables: list[Spooled]) -> Iterator[Any]:
        """Yield all batches, always in the same order."""
        for spooled in sorted(committables, key=lambda each: each.order):
            yield from read_spool(spooled, self.context.files, list[Any])

    def messages(self, committables: list[Spooled], form: Any) -> Iterator[tuple[str, Any]]:
        """Yield all messages, each a `form`, always in the same order, each with an id that no other message has."""
        for spooled in sorted(committables, key=lambda each: each.order):
            number = 0
            for batch in read_spool(spooled, self.context.files, list[form]):
                for message in batch:
                    yield f"{spooled.identity}-{number}", message
                    number += 1

    def forget(self, committables: Iterable[Named]) -> None:
        """They are delivered."""
        if self.context.files is not None:
            for spooled in committables:
                if spooled.name:
                    self.context.files.delete(spooled.name)

    def find_leftovers(self, job_id: str) -> list[Any]:
        files = self.context.files
        return [] if files is None else [name for name in files.names() if not name.startswith(NOTE)]

    def delete_leftovers(self, leftovers: list[Any]) -> None:
        assert self.context.files is not None
        for name in leftovers:
            self.context.files.delete(name)


class NothingToCommit(Committer):
    """For writers that deliver by themselves, at least once. Runs `check` when a job starts from nothing."""

    def __init__(self, check: Callable[[], Any]) -> None:
        self._check = check

    def open(self, context: CommitterContext) -> None:
        if context.resumed_epoch < 0:
            self._check()

    def commit(self, committables: list[Any]) -> None:
        """There is nothing."""
