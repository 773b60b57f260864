"""What the driver hands to each task of an epoch: its own part of the epoch's header, and nothing of other partitions.

A task of stage 0 reads its `SourceTask` as its partition's data. A task of a later stage gets its header as a frame,
through the shuffle. So what a task receives does not grow with the parallelism.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence

from headwater.common.ids import Place
from headwater.runtime.epoch.chunk import FrameKind, Header, encode_frame
from headwater.runtime.epoch.messages import EpochHeader, SourceTask
from headwater.runtime.stage.runners import Routed


def next_target(partition: int, parallelism: int) -> int:
    """Return the partition of the next stage through which a frame passes on its way to a later stage."""
    return partition % max(parallelism, 1)


def header_frames(header: EpochHeader, parallelisms: Sequence[int]) -> list[Routed]:
    """Return one frame for each partition of the stages after stage 0, with its way through stage 1."""
    return [
        (next_target(partition, parallelisms[1]), _header_frame(header, Place(stage, partition)))
        for stage, width in enumerate(parallelisms[1:], start=1)
        for partition in range(width)
    ]


def _header_frame(header: EpochHeader, place: Place) -> bytes:
    head = Header(FrameKind.HEADER, place.stage, place.partition, 0, "", 0, 0)
    return encode_frame(head, pickle.dumps(header.for_place(place), 5))


def source_inputs(header: EpochHeader, tasks: Sequence[SourceTask], frames: Sequence[Routed]) -> list[bytes]:
    """Return the input of each task of stage 0. The tasks share out the `frames` and send them on."""
    common = header.for_place(None)
    return [pickle.dumps((common, task, list(frames[index :: len(tasks)])), 5) for index, task in enumerate(tasks)]


def load_source_input(data: bytes) -> tuple[EpochHeader, SourceTask, list[Routed]]:
    """Decode one element of `source_inputs`."""
    header, task, frames = pickle.loads(data)
    return header, task, frames
