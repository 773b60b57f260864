"""Records as lines on standard output or standard error."""

from __future__ import annotations

import sys
import uuid
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from headwater.common.connector import Committer, Sink, SinkWriter, WriterContext
from headwater.common.errors import HeadwaterError
from headwater.common.string_form import string_form_for
from headwater.common.type_system.information import TypeInformation

__all__ = ["PrintSink"]


_TOKENS_KEPT = 1000
"""Number of tokens to remember, of partitions' epochs that were printed."""


@dataclass(frozen=True)
class _PrintedLines:
    """Committable: what one partition prints for one epoch."""

    epoch: int
    partition: int
    token: str
    """Unique: distinguishes a repeated commit from a second writer of the same partition."""
    text: str


class PrintSink(Sink):
    """Prints every record in the driver's terminal, in the form in which PyFlink shows it for the declared type.

    A line has the prefix `2> ` (the partition, from 1) when the sink's parallelism is above 1, with an identifier
    `identifier:2> ` or `identifier> `. Lines appear when their epoch is complete. When the job goes back to its last
    checkpoint, lines that came after it are printed once more: a terminal cannot be asked what it shows.
    """

    eager = True

    def __init__(self, identifier: str = "", stderr: bool = False, type_info: TypeInformation | None = None) -> None:
        self.identifier = identifier
        self.stderr = stderr
        self.type_info = type_info

    def create_writer(self, context: WriterContext) -> SinkWriter:
        return _PrintWriter(context, self._prefix(context), string_form_for(self.type_info))

    def create_committer(self) -> Committer:
        return _PrintCommitter(self.stderr)

    def _prefix(self, context: WriterContext) -> str:
        subtask = str(context.partition + 1) if context.parallelism > 1 else ""
        label = ":".join(part for part in (self.identifier, subtask) if part)
        return f"{label}> " if label else ""


class _PrintWriter(SinkWriter):
    def __init__(self, context: WriterContext, prefix: str, to_text: Callable[[Any], str]) -> None:
        self._context = context
        self._to_text = to_text
        self._prefix = prefix
        self._lines: list[str] = []

    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        prefix, to_text = self._prefix, self._to_text
        self._lines += [f"{prefix}{to_text(value)}\n" for value in values]

    def prepare_commit(self) -> list[Any]:
        text = "".join(self._lines)
        self._lines = []
        context = self._context
        return [_PrintedLines(context.epoch, context.partition, uuid.uuid4().hex, text)] if text else []

    def abort(self) -> None:
        self._lines = []


class _PrintCommitter(Committer):
    def __init__(self, stderr: bool) -> None:
        self._stderr = stderr
        self._printed: deque[str] = deque(maxlen=_TOKENS_KEPT)

    def commit(self, committables: list[Any]) -> None:
        stream = sys.stderr if self._stderr else sys.stdout  # looked up now: it may have been redirected
        try:
            for lines in sorted(committables, key=lambda item: (item.epoch, item.partition)):
                if lines.token not in self._printed:
                    stream.write(lines.text)
                    self._printed.append(lines.token)
            stream.flush()
        except BrokenPipeError as error:
            raise HeadwaterError("nobody reads any more what the job prints: its output was closed") from error
