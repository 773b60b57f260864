"""Collects the frames of one partition of a stage and puts them into event-time order."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from headwater.common.ids import MIN_WATERMARK
from headwater.runtime.epoch.chunk import FrameKind, Header, decode_header, payload_of
from headwater.runtime.epoch.steps import Step
from headwater.runtime.stage.edge_ids import consumer_of
from headwater.time.merge import ChannelInput, merge

SPOOL_BYTES = 64 << 20
"""An epoch's frames beyond this size go to a temporary file."""


@dataclass
class _Channel:
    chunks: list[tuple[int, int, Any]] = field(default_factory=list)
    watermark: int = MIN_WATERMARK
    idle: bool = False
    ended: bool = False


class Spool:
    """The payloads of an epoch: in memory up to a limit, then in a temporary file."""

    def __init__(self, limit: int = SPOOL_BYTES) -> None:
        self._limit = limit
        self._in_memory = 0
        self._file: Any = None

    def put(self, payload: memoryview) -> Any:
        if self._in_memory + len(payload) <= self._limit:
            self._in_memory += len(payload)
            return payload
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="headwater-spool-")  # noqa: SIM115 closed in close()
        offset = self._file.seek(0, 2)
        self._file.write(payload)
        return (offset, len(payload))

    def get(self, stored: Any) -> memoryview | bytes:
        if isinstance(stored, memoryview):
            return stored
        self._file.seek(stored[0])
        data: bytes = self._file.read(stored[1])
        return data

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


class StageInput:
    """All frames of an epoch for one partition. The caller must send on frames for other stages (`passing`)."""

    def __init__(self, stage: int) -> None:
        self._stage = stage
        self._spool = Spool()
        self._heads: dict[int, dict[tuple[int, str], _Channel]] = {}
        self.passing: list[tuple[Header, bytes]] = []
        self.errors: list[tuple[Header, bytes]] = []
        self.header: memoryview | None = None
        """The partition's `EpochHeader`, pickled, if it came as a frame."""

    def add(self, frame: bytes, header: Header | None = None) -> None:
        """Add one frame, whose `header` the caller may have read already."""
        header = header or decode_header(frame)
        if header.kind == FrameKind.ERROR:
            self.errors.append((header, frame))
        elif header.stage != self._stage:
            self.passing.append((header, frame))
        elif header.kind == FrameKind.HEADER:
            self.header = payload_of(frame)
        else:
            channels = self._heads.setdefault(consumer_of(header.edge), {})
            channel = channels.setdefault((header.edge, header.channel), _Channel())
            if header.kind == FrameKind.DATA:
                stored = self._spool.put(payload_of(frame))
                channel.chunks.append((header.watermark, header.seq, (header.edge, stored)))
            else:
                channel.watermark, channel.idle, channel.ended = header.watermark, header.idle, header.ended

    def steps(self, floors: Mapping[int, int]) -> Iterator[Step]:
        """Yield the runner's steps in order. `floors` is {head operator: its watermark after the last epoch}."""
        plans = [self._head_steps(head, floors.get(head, MIN_WATERMARK)) for head in sorted(self._heads)]
        if len(plans) == 1:
            yield from plans[0]
            return
        # Several heads: the one with the smallest watermark goes first.
        waiting = [(floors.get(head, MIN_WATERMARK), index) for index, head in enumerate(sorted(self._heads))]
        while waiting:
            waiting.sort()
            _, index = waiting.pop(0)
            for step in plans[index]:
                yield step
                if step.kind == "watermark":
                    waiting.append((step.value, index))
                    break

    def _head_steps(self, head: int, floor: int) -> Iterator[Step]:
        inputs = []
        for (edge, name), channel in sorted(self._heads[head].items()):
            channel.chunks.sort(key=lambda chunk: chunk[:2])
            inputs.append(
                ChannelInput(f"{edge}/{name}", channel.chunks, channel.watermark, channel.idle, channel.ended)
            )
        for kind, value in merge(inputs, floor):
            if kind == "chunk":
                edge, stored = value
                yield Step("chunk", edge, self._spool.get(stored))
            elif kind == "watermark":
                yield Step("watermark", head, value)
            else:
                watermark, idle = value
                if watermark > floor:
                    yield Step("watermark", head, watermark)
                yield Step("idle", head, idle)

    def close(self) -> None:
        self._spool.close()
