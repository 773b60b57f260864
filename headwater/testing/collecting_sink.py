"""A sink whose committed records a test can read."""

from __future__ import annotations

import os
import pickle
import uuid
from collections.abc import Sequence
from typing import Any, NamedTuple

import cloudpickle

from headwater.common.connector import Committer, Sink, SinkWriter, WriterContext
from headwater.common.errors import SerializationError, short_repr
from headwater.testing.scratch import scratch_path


class CollectedPart(NamedTuple):
    """A committable: the records that one partition wrote in one epoch."""

    epoch: int
    partition: int
    token: str
    """No other part has it: not of another attempt, nor of another sink on the same directory."""
    payload: bytes


class CollectingSink(Sink):
    """Keeps committed records, exactly once, in files of a directory. Works in a real job too.

    The commit runs in the driver, so `results()` works in the process that started the job, and in any other process on
    that machine with the same `directory`. Without a `directory`, the records go away with the sink: keep it.
    """

    def __init__(self, directory: str | None = None) -> None:
        self._directory = directory if directory is not None else scratch_path(self, "headwater-collected-")
        if directory is not None:
            os.makedirs(directory, exist_ok=True)

    @property
    def directory(self) -> str:
        """Where the files are. One of its own is made when it is first asked for: an unused sink leaves nothing."""
        os.makedirs(self._directory, 0o700, exist_ok=True)
        return self._directory

    def create_writer(self, context: WriterContext) -> SinkWriter:
        return _CollectingWriter(context)

    def create_committer(self) -> Committer:
        return _CollectingCommitter(self.directory)

    def results(self) -> list[Any]:
        """All committed records, by epoch and partition, each partition's in the order they were written."""
        return [value for value, _ in self.results_with_timestamps()]

    def results_with_timestamps(self) -> list[tuple[Any, int | None]]:
        """As `results`, each record with its event timestamp."""
        collected: list[tuple[Any, int | None]] = []
        for name in sorted(os.listdir(self.directory)):
            if name.endswith(".part"):
                with open(os.path.join(self.directory, name), "rb") as file:
                    collected += pickle.load(file)
        return collected


class _CollectingWriter(SinkWriter):
    def __init__(self, context: WriterContext) -> None:
        self._context = context
        self._records: list[tuple[Any, int | None]] = []

    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        self._records += zip(values, timestamps if timestamps is not None else [None] * len(values), strict=True)

    def prepare_commit(self) -> list[Any]:
        if not self._records:
            return []
        try:
            # By value, because the records' class may live in the script that runs the test.
            payload = cloudpickle.dumps(self._records)
        except Exception as error:
            raise SerializationError(
                f"sink '{self._context.operator_name}': a record cannot be pickled ({error}); one of them is "
                f"{short_repr(self._records[0][0])}"
            ) from error
        context = self._context
        self._records = []
        return [CollectedPart(context.epoch, context.partition, uuid.uuid4().hex, payload)]

    def abort(self) -> None:
        self._records = []


class _CollectingCommitter(Committer):
    def __init__(self, directory: str) -> None:
        self._directory = directory

    def commit(self, committables: list[Any]) -> None:
        for part in committables:
            # The name identifies the part, so a second commit of the same part replaces the file.
            path = os.path.join(self._directory, f"{part.epoch:012d}-{part.partition:05d}-{part.token}.part")
            with open(path + ".tmp", "wb") as file:
                file.write(part.payload)
            os.replace(path + ".tmp", path)
