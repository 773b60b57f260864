"""A two-phase sink, and the outside world that sees what was committed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from headwater.common.connector import Committer, Sink, SinkWriter, WriterContext


class LostTransactionError(Exception):
    """Somebody commits what the sink does not have any more: output is lost."""


class Outside:
    """Transactions that were prepared, and those that everybody sees, in the order in which they became visible."""

    def __init__(self) -> None:
        self.prepared: dict[str, list[Any]] = {}
        self.visible: dict[str, list[Any]] = {}
        self.on_commit: Callable[[str], None] = lambda transaction: None
        """Called before a transaction is committed, for the first time or again."""

    def prepare(self, transaction: str, records: list[Any]) -> None:
        self.prepared[transaction] = records

    def commit(self, transaction: str) -> None:
        self.on_commit(transaction)
        if transaction in self.visible:
            return
        if transaction not in self.prepared:
            raise LostTransactionError(f"transaction {transaction} was deleted before its commit")
        self.visible[transaction] = self.prepared.pop(transaction)

    def records(self) -> list[Any]:
        return [record for records in self.visible.values() for record in records]


_outsides: dict[str, Outside] = {}
"""By name: functions and sinks are pickled on their way to the slots, the world is not."""


class SimulatedSink(Sink):
    """Writes to the `Outside` of a name."""

    def __init__(self, name: str = "outside") -> None:
        self._name = name

    def create_writer(self, context: WriterContext) -> SinkWriter:
        return _Writer(_outsides[self._name], context)

    def create_committer(self) -> Committer:
        return _Committer(_outsides[self._name])


def new_outside(name: str = "outside") -> Outside:
    """The world of the history that begins now."""
    _outsides[name] = Outside()
    return _outsides[name]


class _Writer(SinkWriter):
    def __init__(self, outside: Outside, context: WriterContext) -> None:
        self._outside = outside
        self._transaction = f"{context.attempt_id}/{context.partition}"
        self._records: list[Any] = []

    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        self._records += values

    def prepare_commit(self) -> list[Any]:
        if not self._records:
            return []
        self._outside.prepare(self._transaction, self._records)
        return [self._transaction]

    def abort(self) -> None:
        self._records = []


class _Committer(Committer):
    def __init__(self, outside: Outside) -> None:
        self._outside = outside

    def commit(self, committables: list[Any]) -> None:
        for transaction in committables:
            self._outside.commit(transaction)

    def find_leftovers(self, job_id: str) -> list[Any]:
        return list(self._outside.prepared)

    def delete_leftovers(self, leftovers: list[Any]) -> None:
        for transaction in leftovers:
            self._outside.prepared.pop(transaction, None)
