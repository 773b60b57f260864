"""The sink of shadow runs: writes text to files that only the comparison reads, instead of the program's own sink."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

from headwater.common.connector import Committer, Sink, SinkWriter, WriterContext


@dataclass(frozen=True)
class DivertedPart:
    """A committable: the records that one partition wrote in one epoch, as texts."""

    epoch: int
    partition: int
    attempt_id: str
    texts: tuple[str, ...]


class DivertedSink(Sink):
    """Replaces a sink. `diverted_records` reads what it has committed."""

    def __init__(self, directory: str, uid: str) -> None:
        self.directory = directory
        self.uid = uid

    def create_writer(self, context: WriterContext) -> SinkWriter:
        return _DivertedWriter(context)

    def create_committer(self) -> Committer:
        return _DivertedCommitter(_folder(Path(self.directory), self.uid))


class _DivertedWriter(SinkWriter):
    def __init__(self, context: WriterContext) -> None:
        self._context = context
        self._texts: list[str] = []

    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        self._texts += map(comparable_text, values)

    def prepare_commit(self) -> list[Any]:
        texts, self._texts = tuple(self._texts), []
        context = self._context
        return [DivertedPart(context.epoch, context.partition, context.attempt_id, texts)] if texts else []

    def abort(self) -> None:
        self._texts = []


class _DivertedCommitter(Committer):
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def commit(self, committables: list[Any]) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        for part in committables:
            if not isinstance(part, DivertedPart):
                continue  # a committable of the original job, for its own sink
            # The name identifies the part, so a second commit of the same part replaces the file.
            path = self._folder / f"{part.epoch:012d}-{part.partition:05d}-{part.attempt_id}.json"
            draft = path.with_suffix(".tmp")
            draft.write_text(json.dumps(part.texts), encoding="utf-8")
            os.replace(draft, path)


def diverted_records(directory: Path, uid: str) -> Iterator[tuple[int, list[str]]]:
    """Yield (epoch, texts) of the committed output of sink `uid`, in the order of epochs and partitions."""
    folder = _folder(directory, uid)
    for path in sorted(folder.glob("*.json")) if folder.is_dir() else ():
        yield int(path.name.partition("-")[0]), json.loads(path.read_text(encoding="utf-8"))


def _folder(directory: Path, uid: str) -> Path:
    return directory / hashlib.sha256(uid.encode()).hexdigest()[:16]


def comparable_text(value: Any) -> str:
    """Return a text that is the same for equal records, even if two programs define their class.

    Dicts and sets are in a fixed order, and there are no ids of objects.
    """
    kind = type(value)
    if kind in _PLAIN:
        return repr(value)
    if isinstance(value, Mapping):
        items = sorted(f"{comparable_text(key)}: {comparable_text(item)}" for key, item in value.items())
        return _named(value, dict, "{" + ", ".join(items) + "}")
    if isinstance(value, set | frozenset):
        return _named(value, set, "{" + ", ".join(sorted(map(comparable_text, value))) + "}")
    if is_dataclass(value):
        return _object(value, {each.name: getattr(value, each.name) for each in fields(value)})
    if isinstance(value, tuple):
        names = getattr(value, "_fields", None)
        if names is not None:
            return _object(value, dict(zip(names, value, strict=True)))
        return _named(value, tuple, "(" + ", ".join(map(comparable_text, value)) + ")")
    if isinstance(value, list):
        return _named(value, list, "[" + ", ".join(map(comparable_text, value)) + "]")
    if kind.__repr__ is _DEFAULT_REPR and hasattr(value, "__dict__"):
        return _object(value, vars(value))
    return repr(value)


_DEFAULT_REPR: Any = object.__repr__
_PLAIN = frozenset({bool, int, float, str, bytes, type(None)})


def _named(value: object, usual: type, text: str) -> str:
    return text if type(value) is usual else f"{type(value).__name__}({text})"


def _object(value: object, attributes: Mapping[str, Any]) -> str:
    text = ", ".join(f"{name}={comparable_text(item)}" for name, item in sorted(attributes.items()))
    return f"{type(value).__name__}({text})"
