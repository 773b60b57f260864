"""A checkpoint storage in a dict, with a hook around every operation: the place for pauses and lost answers."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from headwater.checkpoint.storage.base import StoredFile

Perform = Callable[[], object]


class DictStorage:
    """All instances made with `sharing` see the same files; each has its own `around`."""

    def __init__(self, files: dict[str, bytes] | None = None) -> None:
        self.files: dict[str, bytes] = {} if files is None else files
        self.around: Callable[[str, str, Perform], object] = lambda operation, name, perform: perform()

    def sharing(self, around: Callable[[str, str, Perform], object]) -> DictStorage:
        other = DictStorage(self.files)
        other.around = around
        return other

    url = "dict://job"

    @property
    def root(self) -> StoredFile:
        return StoredFile(self, "")

    def create(self, directories: Sequence[str]) -> None:
        pass

    @contextlib.contextmanager
    def write(self, name: str, *, durable: bool = True, unnamed: bool = False) -> Iterator[BinaryIO]:
        buffer = io.BytesIO()
        yield buffer
        self.around("write", name, lambda: self.files.update({name: buffer.getvalue()}))

    def write_once(self, name: str, content: bytes, *, durable: bool = True) -> None:
        def create() -> None:
            if self.files.setdefault(name, content) is not content:
                raise FileExistsError(name)

        self.around("write_once", name, create)

    def copy(self, source: str, target: str, content: bytes) -> None:
        def copy() -> None:
            if source not in self.files:
                raise FileNotFoundError(2, "No such file", source)
            self.files[target] = self.files[source]

        self.around("copy", target, copy)

    def upload(self, name: str, source: Path) -> None:
        with self.write(name) as file:
            file.write(source.read_bytes())

    def download(self, name: str, target: Path) -> None:
        target.write_bytes(self.read(name))

    def read(self, name: str) -> bytes:
        def read() -> bytes:
            if name not in self.files:
                raise FileNotFoundError(2, "No such file", name)
            return self.files[name]

        content = self.around("read", name, read)
        assert isinstance(content, bytes)
        return content

    def open(self, name: str) -> BinaryIO:
        return io.BytesIO(self.read(name))

    def size(self, name: str) -> int | None:
        size = self.around("size", name, lambda: len(self.files[name]) if name in self.files else None)
        assert size is None or isinstance(size, int)
        return size

    def list(self, directory: str) -> list[str]:
        prefix = directory + "/"
        names = self.around(
            "list", directory, lambda: [name.removeprefix(prefix) for name in self.files if name.startswith(prefix)]
        )
        assert isinstance(names, list)
        return names

    def directories(self) -> Sequence[str]:
        return sorted({name.partition("/")[0] for name in self.files if "/" in name})

    def delete(self, name: str) -> bool:
        return bool(self.around("delete", name, lambda: self.files.pop(name, None) is not None))

    def locate(self, name: str) -> StoredFile:
        return StoredFile(self, name)

    def local_copy(self, name: str) -> Path | None:
        return None
