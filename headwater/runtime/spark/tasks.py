"""The code inside Spark tasks: reading splits (stage 0), relaying to slots, and stateless stages.

PySpark's Python workers call these functions. Nothing here may depend on which worker runs a task: what a worker keeps
between tasks (`worker_job.py`) is only a cache.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing

from pyspark import TaskContext

from headwater.common.ids import Place
from headwater.graph.plan import StageSpec
from headwater.runtime.epoch import fault
from headwater.runtime.epoch.chunk import EVERY, TO_DRIVER, FrameKind, Header, decode_header, encode_frame
from headwater.runtime.epoch.failure import AttemptFailedError, FailureReason, failure_of
from headwater.runtime.epoch.messages import EpochHeader, PartitionAck, SourceTask
from headwater.runtime.epoch.steps import run_steps
from headwater.runtime.slot.relay import Relay
from headwater.runtime.slot.starter import SlotLaunch
from headwater.runtime.spark.envelopes import next_target
from headwater.runtime.spark.worker_job import WorkerJob
from headwater.runtime.spark.worker_watch import watch_this_worker
from headwater.runtime.stage.input import StageInput
from headwater.runtime.stage.round import OutputEnded
from headwater.runtime.stage.runners import Routed
from headwater.runtime.stage.source_task import run_source_task


class StageTask:
    """One task of one stage in one epoch attempt: routes frames, and turns errors into frames."""

    def __init__(self, launch: SlotLaunch, place: Place) -> None:
        self.place = place
        self.launch = launch

    def to_driver(self, message: object, kind: int = FrameKind.ACK) -> Iterator[Routed]:
        """Yield a frame for the driver. An error goes to all partitions of the next stage, so that all of them stop."""
        frame = encode_frame(Header(kind, TO_DRIVER, 0, 0, "", 0, 0), pickle.dumps(message, 5))
        width = self.width_of_next()
        if kind == FrameKind.ERROR:
            for target in range(width):
                yield target, frame
        else:
            yield next_target(self.place.partition, width), frame

    def width_of_next(self) -> int:
        following = self.launch.parallelisms[self.place.stage + 1 :]
        return following[0] if following else 1

    def route(self, routed: Iterable[Routed]) -> Iterator[Routed]:
        """Yield the operators' frames with their targets in the next stage, which relays those for later stages."""
        for _, frame in routed:
            yield from self.send_on(decode_header(frame), frame)

    def send_on(self, header: Header, frame: bytes) -> Iterator[Routed]:
        """Yield a frame for each partition of the next stage that gets it."""
        width = self.width_of_next()
        if header.stage != self.place.stage + 1:
            yield next_target(self.place.partition, width), frame
        elif header.target == EVERY:
            for target in range(width):
                yield target, frame
        else:
            yield header.target, frame

    def guarded(self, body: Callable[[], Iterator[Routed]]) -> Iterator[Routed]:
        """Run the task. Errors travel to the driver as frames, not as noisy Spark failures."""
        context = TaskContext.get()
        if context is not None:
            watch_this_worker(self.launch.health_seconds)
        if context is not None and context.attemptNumber() > 0:
            # Spark retried a lost task by itself. A slot must see each attempt once: the driver starts a new attempt.
            text = "Spark retried a task; the epoch starts over"
            yield from self.to_driver(AttemptFailedError(text, FailureReason.PROCESS_LOST), FrameKind.ERROR)
            return
        try:
            yield from body()
        except Exception as error:
            failure = failure_of(error, self.place)
            yield from self.to_driver(failure, FrameKind.ERROR)
        finally:
            WorkerJob.give_up(self.launch)


def source_stage(header: EpochHeader, launch: SlotLaunch, source_task: SourceTask) -> Iterator[Routed]:
    """Stage 0: read the splits that the driver assigned to this task."""
    task = StageTask(launch, Place(0, source_task.index))
    return task.guarded(lambda: _read_splits(task, header, source_task))


def _read_splits(task: StageTask, header: EpochHeader, source_task: SourceTask) -> Iterator[Routed]:
    job = WorkerJob.of(task.launch)
    source = next(source for source in job.plan.sources if source.id == source_task.source_id)
    runner, outbox = job.runners.borrow(Place(0, source_task.subtask), header.attempt.incarnation)
    for message in run_source_task(runner, source_task, source, header, job.readers):
        yield from task.route(outbox)
        outbox.clear()
        if message is not None:
            yield from task.to_driver(message)
    if header.final:
        job.readers.close()
    job.runners.give_back(Place(0, source_task.subtask), runner, outbox, final=header.final)


def operator_stage(launch: SlotLaunch, stage: int, partition: int, frames: Iterable[bytes]) -> Iterator[Routed]:
    """A later stage: collect the partition's frames, order them, and process them here or in the slot.

    One of the frames is the partition's header, unless an earlier stage has failed.
    """
    task = StageTask(launch, Place(stage, partition))
    return task.guarded(lambda: _run_stage(task, frames))


def _run_stage(task: StageTask, frames: Iterable[bytes]) -> Iterator[Routed]:
    collected = StageInput(task.place.stage)
    try:
        for frame in frames:
            collected.add(frame)
        if collected.errors:
            for _, frame in collected.errors[:1]:
                for target in range(task.width_of_next()):
                    yield target, frame
            return
        for passing, frame in collected.passing:
            yield from task.send_on(passing, frame)
        stage = WorkerJob.of(task.launch).plan.stages[task.place.stage]
        run = _in_slot if stage.needs_slot else _in_worker
        yield from run(task, _header_in(collected), collected, stage)
    finally:
        collected.close()


def _header_in(collected: StageInput) -> EpochHeader:
    assert collected.header is not None, "without an error, stage 0 has sent every partition its header"
    header: EpochHeader = pickle.loads(collected.header)
    return header


def _in_slot(task: StageTask, header: EpochHeader, collected: StageInput, stage: StageSpec) -> Iterator[Routed]:
    launch, floors = task.launch, header.floors(stage, task.place.partition)
    with closing(Relay(launch)) as relay:
        known = header.address_book.get(task.place)
        relay.call(known, task.place, header.begin_for(task.place), collected.steps(floors))
        for event in relay.events():
            if isinstance(event, PartitionAck):
                yield from task.to_driver(event)
            elif not isinstance(event, OutputEnded):
                yield from task.route((event,))


def _in_worker(task: StageTask, header: EpochHeader, collected: StageInput, stage: StageSpec) -> Iterator[Routed]:
    job = WorkerJob.of(task.launch)
    attempt, floors = header.attempt, header.floors(stage, task.place.partition)
    started = time.perf_counter()
    runner, outbox = job.runners.borrow(task.place, attempt.incarnation)
    runner.begin_epoch(
        attempt.epoch, attempt.id, header.now_ms, header.watermarks.get(task.place, {}), refusals=header.refusals
    )
    runner.replay(header.letters)
    for _ in run_steps(runner, collected.steps(floors), attempt.epoch):
        if outbox:
            yield from task.route(outbox)
            outbox.clear()
    outcome = runner.finish_epoch(header.now_ms)
    fault.reached("processed", attempt.epoch)
    yield from task.route(outbox)
    outbox.clear()
    milliseconds = (time.perf_counter() - started) * 1000
    yield from task.to_driver(PartitionAck(task.place, outcome, milliseconds))
    job.runners.give_back(task.place, runner, outbox, final=header.final)
