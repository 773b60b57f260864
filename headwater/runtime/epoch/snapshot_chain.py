"""The snapshots of one partition, on their way to its slot."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import overload

import msgspec

from headwater.checkpoint.snapshot.file import SnapshotRef

_decoder = msgspec.msgpack.Decoder(list[SnapshotRef])


class SnapshotChain(Sequence[SnapshotRef]):
    """Snapshots, oldest first. Pickled as bytes, which only the slot decodes: whoever passes it on pays nothing."""

    __slots__ = ("_packed", "_refs")

    def __init__(self, refs: Iterable[SnapshotRef] = ()) -> None:
        self._refs: list[SnapshotRef] | None = list(refs)
        self._packed: bytes | None = None

    def __reduce__(self) -> tuple[object, ...]:
        if self._packed is None:
            self._packed = msgspec.msgpack.encode(self._refs)
        return _unpacked, (self._packed,)

    def _decoded(self) -> list[SnapshotRef]:
        if self._refs is None:
            assert self._packed is not None
            self._refs = _decoder.decode(self._packed)
        return self._refs

    def __len__(self) -> int:
        return len(self._decoded())

    def __iter__(self) -> Iterator[SnapshotRef]:
        return iter(self._decoded())

    @overload
    def __getitem__(self, index: int) -> SnapshotRef: ...

    @overload
    def __getitem__(self, index: slice) -> list[SnapshotRef]: ...

    def __getitem__(self, index: int | slice) -> SnapshotRef | list[SnapshotRef]:
        return self._decoded()[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SnapshotChain) and self._decoded() == other._decoded()

    __hash__ = None  # type: ignore[assignment]


def _unpacked(packed: bytes) -> SnapshotChain:
    chain = SnapshotChain.__new__(SnapshotChain)
    chain._packed, chain._refs = packed, None
    return chain
