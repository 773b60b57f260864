"""The order in which a stage reads the chunks of one epoch, and how its watermark advances meanwhile. Pure.

Chunks are read by (watermark, channel, seq). So within one epoch, however big, event time advances as it would live:
channels that are months apart are merged in order, and a backfill of a year does not hold a year of windows in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heapreplace
from operator import itemgetter
from typing import Any, NamedTuple

from headwater.common.ids import MIN_WATERMARK


class ChannelInput(NamedTuple):
    """What one channel brought in one epoch. A channel that is open must be given in every epoch, chunks or not."""

    channel: str | int
    chunks: list[tuple[int, int, Any]]
    """(watermark before the chunk's records, seq, chunk); in order of seq the watermark never goes back."""
    final_watermark: int
    """The channel's watermark after its last chunk."""
    idle: bool
    """Idle at the end of the epoch: excluded from the minimum once its chunks are read."""
    ended: bool
    """Ended for good: also excluded. When all channels have ended, the highest final watermark counts."""


def merge(channels: Iterable[ChannelInput], floor: int) -> Iterator[tuple[str, Any]]:
    """Yield ("watermark", wm) and ("chunk", chunk) in the order of processing, then ("end", (watermark, idle)).

    The watermark before a chunk is the minimum over all channels: that of the next chunk where there is one, else the
    final one. It starts at `floor`, the stage's watermark of the last epoch, and only ever grows. The watermark in
    "end" has been yielded as a step before, unless it is `floor`.

    When no channel is active any more but some are only idle, the stage is idle; its watermark becomes the highest of
    the idle ones, as in Flink, so that it does not depend on which of them fell silent first.
    """
    ordered = sorted(channels, key=_channel_order)
    current = floor
    if all(watermark == MIN_WATERMARK for channel in ordered for watermark, _, _ in channel.chunks):
        for channel in ordered:
            for _, _, chunk in _by_seq(channel.chunks):
                yield "chunk", chunk
    else:
        for step in _merge_in_event_time(ordered, floor):
            if step[0] == "watermark":
                current = step[1]
            yield step
    watermark, idle = _final(ordered, current)
    if watermark > current:
        yield "watermark", watermark
    yield "end", (max(watermark, current), idle)


def _merge_in_event_time(ordered: list[ChannelInput], floor: int) -> Iterator[tuple[str, Any]]:
    current = floor
    held_at: int | None = None  # the lowest final watermark of active channels whose chunks are all read
    heap: list[tuple[int, int, int, Any]] = []  # (watermark, rank of channel, seq, chunk): the next of each channel
    rest: list[Iterator[tuple[int, int, Any]]] = []
    for rank, channel in enumerate(ordered):
        chunks = iter(_by_seq(channel.chunks))
        rest.append(chunks)
        first = next(chunks, None)
        if first is not None:
            heap.append((first[0], rank, first[1], first[2]))
        elif _is_active(channel):
            held_at = _lower(held_at, channel.final_watermark)
    heapify(heap)
    while heap:
        watermark, rank, _, chunk = heap[0]
        merged = _lower(held_at, watermark)
        if merged > current:
            current = merged
            yield "watermark", current
        yield "chunk", chunk
        following = next(rest[rank], None)
        if following is not None:
            heapreplace(heap, (following[0], rank, following[1], following[2]))
            continue
        heappop(heap)
        if _is_active(ordered[rank]):
            held_at = _lower(held_at, ordered[rank].final_watermark)


def _final(channels: list[ChannelInput], current: int) -> tuple[int, bool]:
    """The watermark and the idleness after all chunks."""
    active = [channel.final_watermark for channel in channels if _is_active(channel)]
    if active:
        return min(active), False
    idle = [channel.final_watermark for channel in channels if not channel.ended]
    if idle:
        return max(idle), True
    return max((channel.final_watermark for channel in channels), default=current), False


def _is_active(channel: ChannelInput) -> bool:
    return not channel.idle and not channel.ended


def _lower(held_at: int | None, watermark: int) -> int:
    return watermark if held_at is None or watermark < held_at else held_at


def _by_seq(chunks: list[tuple[int, int, Any]]) -> list[tuple[int, int, Any]]:
    return sorted(chunks, key=itemgetter(1))


def _channel_order(channel: ChannelInput) -> tuple[str, Any]:
    """Return a sort key. Names of different types cannot be compared with each other."""
    return type(channel.channel).__name__, channel.channel
