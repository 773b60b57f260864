"""Checkpoints in a directory that all hosts of the job mount: fsync, rename, hard link."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import BinaryIO

from headwater.checkpoint.storage.durable_file import (
    TEMPORARY_SUFFIX,
    create_exclusively,
    create_unnamed,
    link_atomically,
    replace_atomically,
)
from headwater.common.trusted_directories import make_directory


class LocalStorage:
    """A `CheckpointStorage` on a POSIX file system. Every error is the kernel's OSError."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LocalStorage) and other.root == self.root

    def __hash__(self) -> int:
        return hash(self.root)

    @property
    def url(self) -> str:
        return str(self.root)

    def create(self, directories: Sequence[str]) -> None:
        for directory in directories:
            make_directory(self.root / directory)

    def write(self, name: str, *, durable: bool = True, unnamed: bool = False) -> AbstractContextManager[BinaryIO]:
        path = f"{self.root}/{name}"
        return create_unnamed(path, durable=durable) if unnamed else replace_atomically(path, durable=durable)

    def write_once(self, name: str, content: bytes, *, durable: bool = True) -> None:
        draft = f"{_last(name)}.{uuid.uuid4().hex}{TEMPORARY_SUFFIX}"
        create_exclusively(f"{self.root}/{name}", content, draft, durable=durable)

    def copy(self, source: str, target: str, content: bytes) -> None:
        link_atomically(f"{self.root}/{source}", f"{self.root}/{target}", f"{_last(target)}.{uuid.uuid4().hex}")

    def upload(self, name: str, source: Path) -> None:
        with open(source, "rb") as reader, self.write(name) as writer:
            shutil.copyfileobj(reader, writer, 1 << 20)

    def download(self, name: str, target: Path) -> None:
        shutil.copyfile(self.root / name, target)

    def read(self, name: str) -> bytes:
        return (self.root / name).read_bytes()

    def open(self, name: str) -> BinaryIO:
        return open(self.root / name, "rb")

    def size(self, name: str) -> int | None:
        try:
            return os.stat(f"{self.root}/{name}").st_size
        except FileNotFoundError:
            return None

    def list(self, directory: str) -> list[str]:
        try:
            return os.listdir(self.root / directory)
        except FileNotFoundError:
            return []

    def directories(self) -> Sequence[str]:
        return [path.name for path in self.root.iterdir() if path.is_dir()] if self.root.is_dir() else []

    def delete(self, name: str) -> bool:
        try:
            os.unlink(f"{self.root}/{name}")
        except FileNotFoundError:
            return False
        return True

    def locate(self, name: str) -> Path:
        return self.root / name if name else self.root

    def local_copy(self, name: str) -> Path | None:
        return None


def _last(name: str) -> str:
    return name.rpartition("/")[2]
