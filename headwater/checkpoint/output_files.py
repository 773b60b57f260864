"""The files of a sink in the checkpoint storage: output that is prepared and waits for its commit."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import BinaryIO

import xxhash

from headwater.checkpoint.paths import OUTPUT, CheckpointLayout, validate_name

_MAX_NAME = 150


class StoredOutputFiles:
    """Implements `common.connector.OutputFiles`. Picklable, so that committables may hold it."""

    def __init__(self, layout: CheckpointLayout, operator_uid: str) -> None:
        self._storage = layout.storage
        self._prefix = f"sink{xxhash.xxh64_hexdigest(operator_uid.encode())}-"
        self._made = False

    def __repr__(self) -> str:
        return f"{self._storage.url}/{OUTPUT}/{self._prefix}*"

    def _path(self, name: str) -> str:
        return f"{OUTPUT}/{self._prefix}{validate_name(name, 'output file name', _MAX_NAME)}"

    def write(self, name: str) -> AbstractContextManager[BinaryIO]:
        if not self._made:
            self._storage.create((OUTPUT,))
            self._made = True
        return self._storage.write(self._path(name))

    def open(self, name: str) -> BinaryIO:
        return self._storage.open(self._path(name))

    def delete(self, name: str) -> None:
        self._storage.delete(self._path(name))

    def names(self) -> list[str]:
        return [
            name.removeprefix(self._prefix)
            for name in self._storage.list(OUTPUT)
            if name.startswith(self._prefix) and not name.endswith(".tmp")
        ]
