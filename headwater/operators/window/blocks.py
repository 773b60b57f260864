"""Rows of neighbouring slices that were merged once, so that the windows which have them all need not do it again.

A window of n slices is then about 2 * sqrt(n) merges per key: its blocks, and the slices at its two ends.
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
"""({key: accumulator}, whether all of these are known to be immutable)"""


class SliceBlocks:
    """The merged blocks of one operator. All of it is derived from the slices: nothing here is state.

    Who changes a slice says so with `changed`; who changes slices in any other way (a rollback) calls `clear`.
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
        """Of the blocks that are there, the last start, if there is any."""

    def parts(self, start: int, within: list[int]) -> Iterator[Part]:
        """What the window at `start` is made of, in the order of time. `within` are its slices that are there."""
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
        """Records were, or are about to be, added to `slices`, or these are gone."""
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
    """`merge` raised for `key`; the cause is what it raised."""

    def __init__(self, key: Any) -> None:
        super().__init__(key)
        self.key = key


def merge_parts(merge: Callable[[Any, Any], Any], parts: Iterable[Part]) -> dict[Any, Any]:
    """{key: its accumulators in all parts, merged in order}. Those of the parts stay as they are."""
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
        raise  # of a block: it names the key
    except Exception as error:
        raise MergeFailed(key) from error
    return merged
