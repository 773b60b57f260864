"""The writer of sinks whose output waits in checkpoint storage for its commit."""

from __future__ import annotations

import contextlib
import io
import uuid
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, BinaryIO, Final

from headwater.common.connector import ReusableSinkWriter, WriterContext
from headwater.datastream.connectors.spool import Spooled, SpoolFile

FILE_BYTES: Final = 64 << 20
"""A file of output that is larger than this is followed by another one."""

Encode = Callable[[Sequence[Any], Sequence[int | None] | None], tuple[Any, int, str]]
"""Makes of records and their timestamps a batch for the spool: (what msgpack can hold, how many messages, where the
first of them goes)."""


class SpoolWriter(ReusableSinkWriter):
    """Puts messages into files of the checkpoint storage. They leave it when the checkpoint is durable."""

    def __init__(self, context: WriterContext, encode: Encode) -> None:
        self._encode = encode
        self.begin_epoch(context)

    def begin_epoch(self, context: WriterContext) -> None:
        self._context = context
        self._done: list[Spooled] = []
        self._spool: SpoolFile | None = None
        self._name = ""
        self._buffer = io.BytesIO()
        self._file: AbstractContextManager[BinaryIO] = contextlib.nullcontext(self._buffer)

    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        batch = self._encode(values, timestamps)
        if self._spool is None:
            self._spool = SpoolFile(self._new_file())
        self._spool.add(*batch)
        if self._spool.size >= FILE_BYTES:
            self._end_file()

    def _new_name(self) -> str:
        context = self._context
        return f"e{context.epoch:012d}-{context.attempt_id}-p{context.partition}-{uuid.uuid4().hex[:12]}"

    def _new_file(self) -> BinaryIO:
        files, self._buffer = self._context.files, io.BytesIO()
        self._name = self._new_name() if files is not None else ""
        self._file = contextlib.nullcontext(self._buffer) if files is None else files.write(self._name)
        return self._file.__enter__()

    def _end_file(self) -> None:
        """Make the file durable."""
        assert self._spool is not None
        spool, self._spool = self._spool, None
        spool.end()
        self._file.__exit__(None, None, None)
        context = self._context
        self._done.append(
            Spooled(
                job_id=context.job_id,
                epoch=context.epoch,
                partition=context.partition,
                part=len(self._done),
                messages=spool.messages,
                size=spool.size,
                topic=spool.topic,
                name=self._name,
                content=b"" if context.files is not None else self._buffer.getvalue(),
            )
        )

    def prepare_commit(self) -> list[Any]:
        if self._spool is not None:
            self._end_file()
        done, self._done = self._done, []
        return done

    def abort(self) -> None:
        if self._spool is not None:
            self._spool = None
            with contextlib.suppress(_AbortedError):
                self._file.__exit__(_AbortedError, _AbortedError(), None)  # so that it does not appear
        files = self._context.files
        for spooled in self._done:
            if files is not None:
                files.delete(spooled.name)
        self._done = []


class _AbortedError(Exception):
    """Tells a file's context that it must not appear."""
