"""A source that can wait: the lines of the files of a directory, to which tests append."""

from __future__ import annotations

import os
import select
import time
from pathlib import Path
from typing import Any

from headwater.common.connector import Source, Split, SplitReader


class TailSource(Source):
    """Each file is a split, from its first byte on. New files are found every 100 ms."""

    bounded = False
    discovery_interval_ms = 100
    waits = True

    def __init__(self, directory: Path) -> None:
        self.directory = str(directory)
        directory.mkdir(exist_ok=True)

    def discover_splits(self, parallelism: int, known: frozenset[str]) -> list[Split]:
        return [Split(name, None) for name in sorted(os.listdir(self.directory)) if name not in known]

    def open_reader(self, split: Split, position: Any | None) -> SplitReader:
        return TailReader(os.path.join(self.directory, split.split_id), position or 0)


class TailReader(SplitReader):
    def __init__(self, path: str, position: int) -> None:
        self._file = open(path, "rb")  # noqa: SIM115
        self._file.seek(position)

    def read_batch(self, max_records: int) -> list[str]:
        lines: list[str] = []
        while len(lines) < max_records and (line := self._file.readline()):
            lines.append(line.decode().rstrip())
        return lines

    def position(self) -> int:
        return self._file.tell()

    def wait_readable(self, deadline: float, wake: int) -> bool:
        while os.fstat(self._file.fileno()).st_size <= self._file.tell():
            left = deadline - time.monotonic()
            if left <= 0 or select.select([wake], [], [], min(left, 0.005))[0]:
                return False
        return True

    def close(self) -> None:
        self._file.close()


def append(file: Path, *lines: object) -> None:
    """Append whole lines to a file in one write."""
    with open(file, "ab") as opened:
        opened.write("".join(f"{line}\n" for line in lines).encode())
