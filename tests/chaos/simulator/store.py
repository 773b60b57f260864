"""The store: files in a dict, with everything in the way that can be between a program and its files."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Protocol, TypeVar

from headwater.checkpoint.storage.base import StoredFile

_T = TypeVar("_T")


class Weather(Protocol):
    """What the world does to an operation: let it happen, or a fault."""

    def around(self, operation: str, name: str, perform: Callable[[], _T], tear: Callable[[], None] | None) -> _T: ...


class SimulatedStorage:
    """A `CheckpointStorage` that many see at once. A file is whole under its name or not there, as the contract says.

    What a torn write leaves: half a file under a temporary name; where names are used by one attempt only (snapshots),
    under the name itself, which is worse than any real store.
    """

    def __init__(self, url: str, weather: Weather) -> None:
        self.url = url
        self.files: dict[str, bytes] = {}
        self._weather = weather
        self.held_back: list[Callable[[], None]] | None = None
        """If set, writes go here instead of happening (see `full_snapshots.py`)."""

    @property
    def root(self) -> StoredFile:
        return StoredFile(self, "")

    def create(self, directories: Sequence[str]) -> None:
        pass

    # --- writing

    @contextlib.contextmanager
    def write(self, name: str, *, durable: bool = True, unnamed: bool = False) -> Iterator[BinaryIO]:
        buffer = io.BytesIO()
        yield buffer
        self._put(name, buffer.getvalue())

    def copy(self, source: str, target: str, content: bytes) -> None:
        if source not in self.files:
            raise FileNotFoundError(2, "No such file", source)
        self._put(target, self.files[source])

    def upload(self, name: str, source: Path) -> None:
        self._put(name, source.read_bytes())

    def _put(self, name: str, content: bytes) -> None:
        def perform() -> None:
            self.files[name] = content

        def write() -> None:
            self._weather.around("write", name, perform, lambda: self._tear(name, content))

        if self.held_back is not None:
            self.held_back.append(write)
        else:
            write()

    def write_once(self, name: str, content: bytes, *, durable: bool = True) -> None:
        def perform() -> None:
            if self.files.setdefault(name, content) is not content:
                raise FileExistsError(17, "File exists", name)

        self._weather.around("write_once", name, perform, lambda: self._tear(name, content))

    def _tear(self, name: str, content: bytes) -> None:
        torn = name if name.startswith(("snapshots/", "splits/")) else f"{name}.tmp"
        self.files[torn] = content[: len(content) // 2]

    def delete(self, name: str) -> bool:
        return self._weather.around("delete", name, lambda: self.files.pop(name, None) is not None, None)

    # --- reading

    def read(self, name: str) -> bytes:
        def perform() -> bytes:
            if name not in self.files:
                raise FileNotFoundError(2, "No such file", name)
            return self.files[name]

        return self._weather.around("read", name, perform, None)

    def open(self, name: str) -> BinaryIO:
        return io.BytesIO(self.read(name))

    def download(self, name: str, target: Path) -> None:
        target.write_bytes(self.read(name))

    def size(self, name: str) -> int | None:
        content = self._weather.around("size", name, lambda: self.files.get(name), None)
        return None if content is None else len(content)

    def list(self, directory: str) -> list[str]:
        prefix = directory + "/"
        return self._weather.around(
            "list",
            directory,
            lambda: [name.removeprefix(prefix) for name in self.files if name.startswith(prefix)],
            None,
        )

    def locate(self, name: str) -> StoredFile:
        return StoredFile(self, name)

    def directories(self) -> Sequence[str]:
        return []  # a job does not ask

    def local_copy(self, name: str) -> Path | None:
        return None
