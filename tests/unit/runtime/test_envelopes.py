"""What a task of an epoch receives: its own part of the header, whatever the parallelism."""

from __future__ import annotations

import pickle

import pytest

from headwater.checkpoint.snapshot.file import SnapshotRef
from headwater.common.connector import Split
from headwater.common.ids import Place
from headwater.runtime.epoch.chunk import decode_header, payload_of
from headwater.runtime.epoch.messages import (
    Attempt,
    Base,
    EpochHeader,
    SlotAddress,
    SourceTask,
    SplitAssignment,
)
from headwater.runtime.epoch.snapshot_chain import SnapshotChain
from headwater.runtime.spark.envelopes import header_frames, load_source_input, source_inputs
from headwater.runtime.stage.input import StageInput

ATTEMPT = Attempt(1, 7, 0, "run")
STAGES = 3


def header_of(parallelism: int) -> EpochHeader:
    """An epoch of a job with a slot for each partition of stages 1 and 2, and long chains of snapshots."""
    places = [Place(stage, partition) for stage in range(1, STAGES) for partition in range(parallelism)]
    return EpochHeader(
        attempt=ATTEMPT,
        base=Base(6, "token-06", 6, "token-06"),
        now_ms=1,
        checkpointing=True,
        final=False,
        address_book={place: SlotAddress(*place, "host", 1, f"{place.partition:02}", 1, "0000") for place in places},
        watermarks={place: {f"in:{place.partition:02}": 5} for place in places},
        snapshots={place: SnapshotChain(snapshot(place, epoch) for epoch in range(20)) for place in places},
    )


def snapshot(place: Place, epoch: int) -> SnapshotRef:
    return SnapshotRef(f"{place.stage}-{place.partition:02}-{epoch:02}.snapshot", 1000, 0, epoch, "delta", (0, 128))


def tasks_of(parallelism: int) -> list[SourceTask]:
    return [
        SourceTask(index, 0, index, (SplitAssignment(Split(f"{index:02}", None), b"position", 100, b"", {}),))
        for index in range(parallelism)
    ]


def received(parallelism: int) -> list[int]:
    """The bytes that each task receives from the driver: its input in stage 0, frames in stage 1, frames in stage 2."""
    header = header_of(parallelism)
    frames = header_frames(header, [parallelism] * STAGES)
    inputs = [len(data) for data in source_inputs(header, tasks_of(parallelism), frames)]
    first = [sum(len(frame) for target, frame in frames if target == partition) for partition in range(parallelism)]
    second = [len(frame) for _, frame in frames if decode_header(frame).stage == 2]
    return inputs + first + second


def test_what_a_task_receives_does_not_grow_with_the_parallelism() -> None:
    few, many = received(2), received(16)
    assert len(few) == STAGES * 2 and len(many) == STAGES * 16
    assert max(many) <= max(few) + 16, "an index of two digits may take some bytes more than one of one"


def test_each_partition_gets_its_own_entries_and_those_alone() -> None:
    whole = header_of(3)
    seen = []
    for target, frame in header_frames(whole, [1, 2, 3]):
        head = decode_header(frame)
        place = Place(head.stage, head.target)
        seen.append((place, target))
        part = pickle.loads(payload_of(frame))
        assert part.begin_for(place) == whole.begin_for(place)
        assert part.address_book == {place: whole.address_book[place]}
        assert list(part.watermarks) == list(part.snapshots) == [place]
    assert seen == [
        (Place(1, 0), 0), (Place(1, 1), 1),
        (Place(2, 0), 0), (Place(2, 1), 1), (Place(2, 2), 0),
    ]  # fmt: skip


@pytest.mark.parametrize("tasks", [1, 2, 5])
def test_the_tasks_of_stage_0_share_out_the_frames_of_all_partitions(tasks: int) -> None:
    frames = header_frames(header_of(3), [tasks, 3, 3])
    loaded = [load_source_input(data) for data in source_inputs(header_of(3), tasks_of(tasks), frames)]
    assert [task for _, task, _ in loaded] == tasks_of(tasks)
    assert sorted(frame for _, _, part in loaded for frame in part) == sorted(frames)
    assert all(header.attempt == ATTEMPT and not header.snapshots for header, _, _ in loaded)


def test_a_stage_keeps_its_header_and_passes_those_of_later_stages_on() -> None:
    collected = StageInput(1)
    for target, frame in header_frames(header_of(2), [2, 2, 2]):
        if target == 1:
            collected.add(frame)
    assert collected.header is not None
    assert pickle.loads(collected.header).begin_for(Place(1, 1)) == header_of(2).begin_for(Place(1, 1))
    assert [(header.stage, header.target) for header, _ in collected.passing] == [(2, 1)]
