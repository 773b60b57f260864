"""The end of a stream: passes records to a sink's writer, and collects the committables of the epoch."""

from __future__ import annotations

import contextlib
from typing import Any

from headwater.common.connector import ReusableSinkWriter, Sink, SinkWriter, WriterContext
from headwater.common.errors import HeadwaterError, UserCodeError
from headwater.common.row_changes import refuse_retractions
from headwater.operators.base import Operator


class _Batch:
    """Replaces the record in an error if a writer does not say which record failed."""

    def __init__(self, values: list[Any]) -> None:
        self._values = values

    def __repr__(self) -> str:
        return f"<one of {len(self._values)} records, the first is {self._values[0]!r}>"


class SinkOperator(Operator):
    """Uses one writer per epoch attempt, made when the first record comes: an empty epoch costs nothing.

    A `ReusableSinkWriter` that has prepared its epoch is kept for the next one. Nothing is visible before the driver
    commits what `prepare_commit` returned.
    """

    def __init__(self, sink: Sink) -> None:
        self.sink = sink
        self._insert_only = sink.insert_only
        self._writer: SinkWriter | None = None
        """What writes the attempt `_attempt_id`."""
        self._attempt_id = ""
        self._idle: ReusableSinkWriter | None = None
        """Has prepared its last epoch and waits for the next one."""
        self._prepared: SinkWriter | None = None
        """Has prepared this epoch. What it has prepared may not be durable yet."""

    def process_batch(self, values: list[Any], timestamps: list[int | None] | None, input_index: int = 0) -> None:
        if not values:
            return
        writer = self._writer
        if writer is None or self._attempt_id != self.context.attempt_id:
            writer = self._begin_attempt()
        try:
            if self._insert_only:
                refuse_retractions(values, self.sink)
            writer.write_batch(values, timestamps)
        except HeadwaterError:
            raise
        except Exception as error:
            raise UserCodeError.from_exception(
                error, self.context.name, values[0] if len(values) == 1 else _Batch(values), self.context.epoch
            ) from error

    def prepare_commit(self) -> list[Any]:
        if self._writer is None:
            return []
        if self._attempt_id != self.context.attempt_id:
            # The writer belongs to an earlier attempt that ended without `abort_epoch`: its output is not this epoch's.
            self.abort_epoch()
            return []
        writer, self._writer = self._writer, None
        try:
            committables = writer.prepare_commit()
        except BaseException:
            writer.close()
            raise
        self._prepared = writer
        return committables

    def make_durable(self) -> None:
        writer, self._prepared = self._prepared, None
        if writer is None:
            return
        try:
            writer.make_durable()
        except BaseException:
            writer.close()
            raise
        if isinstance(writer, ReusableSinkWriter):
            self._idle = writer
        else:
            writer.close()

    def abort_epoch(self) -> None:
        prepared, self._prepared = self._prepared, None
        if prepared is not None:
            prepared.close()
        if self._writer is None:
            return
        writer, self._writer = self._writer, None
        try:
            writer.abort()
        finally:
            writer.close()

    def close(self) -> None:
        idle, self._idle = self._idle, None
        try:
            self.abort_epoch()
        finally:
            if idle is not None:
                idle.close()

    def _begin_attempt(self) -> SinkWriter:
        with contextlib.suppress(Exception):  # an old attempt's files are invisible anyway
            self.abort_epoch()
        context = self.context
        self._attempt_id = context.attempt_id
        where = WriterContext(
            job_id=context.job_id,
            operator_name=context.name,
            partition=context.partition,
            parallelism=context.parallelism,
            attempt_id=context.attempt_id,
            epoch=context.epoch,
            operator_uid=context.uid,
            files=context.output_files,
            now_ms=context.processing_time_ms,
        )
        idle, self._idle = self._idle, None
        if idle is None:
            self._writer = self.sink.create_writer(where)
        else:
            self._writer = idle  # from now on, whatever fails aborts it
            idle.begin_epoch(where)
        return self._writer
