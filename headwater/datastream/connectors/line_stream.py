"""Raw lines of a file from a byte offset on: what text, JSON and CSV readers share."""

from __future__ import annotations

import threading
from collections import OrderedDict
from itertools import islice
from typing import BinaryIO, Final

from headwater.common.errors import CheckpointError, SerializationError
from headwater.datastream.connectors.file_access import (
    FileSplit,
    current_size,
    is_compressed,
    open_decompressed,
)

_BOM: Final = b"\xef\xbb\xbf"
_SKIP_BYTES: Final = 1 << 20
_PARKED_LIMIT: Final = 4

# Nobody can seek in a compressed file. A worker that continues where it stopped finds the open file here; any other
# worker reads the file from its start and skips to the position: the same records, only later.
_parked: OrderedDict[tuple[str, int, int], BinaryIO] = OrderedDict()  # {(path, size, offset): file}
_parked_lock = threading.Lock()

LinePosition = tuple[int, int]
"""(bytes of decompressed content before, lines before) the next line."""


class LineStream:
    """The lines of one file, with line feeds, as bytes, up to the size that the file had when it was found."""

    def __init__(self, split: FileSplit, position: LinePosition | None) -> None:
        first, end = split.range or (0, split.size)
        self.path = split.path
        self.place = split.path if first == 0 else f"{split.path} after byte {first:,}"
        """For errors: line numbers count from there."""
        self.offset, self.line = position or (first, 0)
        self._size = end
        self._compressed = is_compressed(split.path)
        self._ended = split.size == 0
        self._check_size(split)
        self._file = self._unpark() or self._open_at(self.offset)
        if position is None and first > 0:
            # A line that begins before belongs to the split before; one that begins right here does not.
            self._file.seek(first - 1)
            self.offset += len(self._file.readline()) - 1

    @property
    def position(self) -> LinePosition:
        return (self.offset, self.line)

    def read_lines(self, count: int) -> list[bytes]:
        """Up to `count` lines; [] at the end of the file. The last one may lack its line feed."""
        if self._ended or (not self._compressed and self.offset >= self._size):
            return []
        try:
            lines = list(islice(self._file, count))
        except (OSError, EOFError) as error:
            raise SerializationError(
                f"file {self.place} cannot be read after line {self.line}: {error}; it is damaged or not complete"
            ) from error
        start = self.offset
        self.offset += sum(map(len, lines))
        if not self._compressed and self.offset > self._size:
            self._drop_what_was_appended(lines, start)
        if len(lines) < count:
            self._ended = True
            if not self._compressed and self.offset < self._size:
                raise _shrank(self.path, self._size, self.offset)
        if start == 0 and lines and lines[0].startswith(_BOM):
            lines[0] = lines[0][len(_BOM) :]
        self.line += len(lines)
        return lines

    def close(self) -> None:
        if self._compressed and not self._ended:
            with _parked_lock:
                _parked[self._parking_key()] = self._file
                surplus = _parked.popitem(last=False)[1] if len(_parked) > _PARKED_LIMIT else None
            if surplus is not None:
                surplus.close()
        else:
            self._file.close()

    def _drop_what_was_appended(self, lines: list[bytes], start: int) -> None:
        # The file has grown since it was found. A line that begins before the old end still counts.
        self._ended = True
        while lines and self.offset - len(lines[-1]) >= self._size:
            self.offset -= len(lines.pop())

    def _check_size(self, split: FileSplit) -> None:
        try:
            now = current_size(split.path)
        except FileNotFoundError:
            raise CheckpointError(
                f"file {split.path} is gone, but {self.line} of its lines were read and the rest is still to come; put "
                "it back, or start on a fresh checkpoint directory"
            ) from None
        if now < split.size:
            raise _shrank(split.path, split.size, now)

    def _open_at(self, offset: int) -> BinaryIO:
        try:
            file = open_decompressed(self.path)
        except OSError as error:
            raise CheckpointError(f"file {self.path} cannot be opened: {error.strerror or error}") from error
        if not self._compressed:
            file.seek(offset)
            return file
        left = offset
        while left > 0:
            skipped = len(file.read(min(left, _SKIP_BYTES)))
            if skipped == 0:
                file.close()
                raise _shrank(self.path, offset, offset - left)
            left -= skipped
        return file

    def _parking_key(self) -> tuple[str, int, int]:
        return (self.path, self._size, self.offset)

    def _unpark(self) -> BinaryIO | None:
        if not self._compressed:
            return None
        with _parked_lock:
            return _parked.pop(self._parking_key(), None)


def _shrank(path: str, expected: int, found: int) -> CheckpointError:
    return CheckpointError(
        f"file {path} had {expected:,} bytes and now has {found:,}: it was cut or replaced while the job reads it; "
        "restore it, or start on a fresh checkpoint directory (and write new files under new names)"
    )
