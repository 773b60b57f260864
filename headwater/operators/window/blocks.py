"""Blocks of neighbouring slices, merged once for all windows that contain the whole block.

A window of n slices then needs about 2 * sqrt(n) merges per key: its blocks, and the slices at its two ends.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from math import isqrt
from typing import Any

from headwater.state.copying import captured, is_immutable, protective_copy
from headwater.state.panes import Panes

_LEAST_SLICES = 8
"""Windows of fewer slices are merged slice by slice."""

Part = tuple[Mapping[Any, Any], bool]
"""({key: accumulator}, True if all accumulators are known to be immutable)"""


class SliceBlocks:
    """The merged blocks of one operator. They are derived from the slices, and are no state.

    Call `changed` when slices change, and `clear` when any slices may have changed (a rollback).
    """

    def __init__(self, panes: Panes, slice_ms: int, size_ms: int, offset_ms: int, merge: Callable[[Any, Any], Any]):
        slices = size_ms // slice_ms
        self._panes = panes
        self._size = size_ms
        self._offset = offset_ms
        self._length = slice_ms * isqrt(slices) if slices >= _LEAST_SLICES else 0
        self._merge = merge
        self._blocks: dict[int, Part] = {}
        self._last = 0
        """The last start of the existing blocks, if there are any."""

    def parts(self, start: int, within: list[int]) -> Iterator[Part]:
        """Yield the parts of the window at `start`, in the order of time. `within` are its existing slices."""
        peek, length = self._panes.peek, self._length
        position = 0
        while position < len(within):
            block = self._block_of(within[position]) if length else within[position]
            stop = bisect_left(within, block + length, position) if length else position + 1
            if stop - position > 1 and start <= block and block + length <= start + self._size:
                yield self._block(block, within[position:stop])
            else:
                for begin in within[position:stop]:
                    yield peek(begin), False
            position = stop

    def changed(self, slices: Iterable[int]) -> None:
        """Forget the blocks of `slices`: records are added to these slices, or the slices are gone."""
        if self._blocks and min(slices) < self._last + self._length:
            for begin in set(slices):
                self._blocks.pop(self._block_of(begin), None)

    def clear(self) -> None:
        self._blocks.clear()

    def _block(self, block: int, slices: list[int]) -> Part:
        found = self._blocks.get(block)
        if found is None:
            merged = merge_parts(self._merge, ((self._panes.peek(begin), False) for begin in slices))
            found = merged, all(map(is_immutable, merged.values()))
            self._last = max(self._last, block) if self._blocks else block
            self._blocks[block] = found
        return found

    def _block_of(self, begin: int) -> int:
        return begin - (begin - self._offset) % self._length


class MergeFailed(Exception):
    """`merge` raised for `key`. The exception is the cause of this one."""

    def __init__(self, key: Any) -> None:
        super().__init__(key)
        self.key = key


def merge_parts(merge: Callable[[Any, Any], Any], parts: Iterable[Part]) -> dict[Any, Any]:
    """Return {key: its accumulators of all parts, merged in order}. The parts stay unchanged."""
    merged: dict[Any, Any] = {}
    key: Any = None
    try:
        for pane, immutable in parts:
            if immutable and not merged:
                merged = dict(pane)
                continue
            for key, value in pane.items():
                if not immutable and not is_immutable(value):
                    value = protective_copy(value)
                so_far = merged.get(key)
                folded = value if so_far is None else merge(so_far, value)
                merged[key] = folded if folded is so_far or folded is value else captured(folded)
    except MergeFailed:
        raise  # from merging a block: it names the key already
    except Exception as error:
        raise MergeFailed(key) from error
    return merged
