"""Records brought back into the driver: what `execute_and_collect` iterates over."""

from __future__ import annotations

import pickle
import threading
import uuid
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import cloudpickle

from headwater.common.connector import Committer, Sink, SinkWriter, WriterContext
from headwater.common.errors import SerializationError, short_repr

__all__ = ["CollectSink", "CollectedResults", "collected_results"]

_results: dict[str, CollectedResults] = {}
_results_lock = threading.Lock()


def collected_results(collect_id: str) -> CollectedResults:
    """The results of the sink with this id, in this process. The same object for everybody who asks."""
    with _results_lock:
        return _results.setdefault(collect_id, CollectedResults(collect_id))


class CollectedResults:
    """Committed records on their way from the committer (one thread) to whoever iterates (another).

    Iteration waits for records and ends after `finish`; whoever started the job calls that when it has ended. Every
    record is delivered once.
    """

    def __init__(self, collect_id: str) -> None:
        self.collect_id = collect_id
        self._changed = threading.Condition()
        self._batches: deque[list[Any]] = deque()
        self._epoch = -1
        self._seen: set[str] = set()  # tokens of `_epoch`
        self._finished = False
        self._error: BaseException | None = None

    def add(self, epoch: int, token: str, records: list[Any]) -> None:
        """Take one partition's records of one committed epoch; the same ones again are ignored."""
        with self._changed:
            if epoch < self._epoch or (epoch == self._epoch and token in self._seen):
                return
            if epoch > self._epoch:
                self._epoch, self._seen = epoch, set()
            self._seen.add(token)
            self._batches.append(records)
            self._changed.notify_all()

    def finish(self, error: BaseException | None = None) -> None:
        """No more records will come. With `error` the iteration raises it after the records that are there."""
        with self._changed:
            if not self._finished:
                self._finished, self._error = True, error
            self._changed.notify_all()

    def next_batch(self, timeout_seconds: float | None = None) -> list[Any] | None:
        """The next committed records; [] after `timeout_seconds` without any; None at the end."""
        with self._changed:
            self._changed.wait_for(lambda: bool(self._batches) or self._finished, timeout_seconds)
            if self._batches:
                return self._batches.popleft()
            if not self._finished:
                return []
            if self._error is not None:
                raise self._error
            return None

    def __iter__(self) -> Iterator[Any]:
        while (batch := self.next_batch()) is not None:
            yield from batch

    def close(self) -> None:
        """Forget the results: nobody will ask again."""
        self.finish()
        with _results_lock:
            _results.pop(self.collect_id, None)


@dataclass(frozen=True)
class _CollectedBatch:
    """Committable: what one partition collected in one epoch."""

    epoch: int
    partition: int
    token: str
    """Unique: distinguishes a repeated commit from a second writer of the same partition."""
    records: bytes


class CollectSink(Sink):
    """Hands committed records to `collected_results(collect_id)` in the process that commits."""

    def __init__(self, collect_id: str | None = None) -> None:
        self.collect_id = collect_id or uuid.uuid4().hex

    def create_writer(self, context: WriterContext) -> SinkWriter:
        return _CollectWriter(context)

    def create_committer(self) -> Committer:
        return _CollectCommitter(collected_results(self.collect_id))


class _CollectWriter(SinkWriter):
    def __init__(self, context: WriterContext) -> None:
        self._context = context
        self._records: list[Any] = []

    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        self._records.extend(values)

    def prepare_commit(self) -> list[Any]:
        records, self._records = self._records, []
        if not records:
            return []
        context = self._context
        return [_CollectedBatch(context.epoch, context.partition, uuid.uuid4().hex, _pickle(records, context))]

    def abort(self) -> None:
        self._records = []


class _CollectCommitter(Committer):
    def __init__(self, results: CollectedResults) -> None:
        self._results = results

    def commit(self, committables: list[Any]) -> None:
        for batch in sorted(committables, key=lambda item: (item.epoch, item.partition)):
            self._results.add(batch.epoch, batch.token, pickle.loads(batch.records))

    # `close` must not end the results: it is called after a failure, too, and only the job's client knows of that.
    # Whoever starts the job calls `CollectedResults.finish`.


def _pickle(records: list[Any], context: WriterContext) -> bytes:
    try:
        return bytes(cloudpickle.dumps(records, protocol=5))
    except Exception as error:
        for record in records:
            try:
                cloudpickle.dumps(record)
            except Exception as cause:
                raise SerializationError(
                    f"operator '{context.operator_name}' collects a record that cannot be pickled: "
                    f"{short_repr(record)}: {cause}; map it to plain values first"
                ) from cause
        raise SerializationError(f"operator '{context.operator_name}' cannot pickle its records: {error}") from error
