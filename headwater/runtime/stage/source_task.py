"""Stage 0: reads splits and pushes their records through the operators chained to the source."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from headwater.common.connector import Blocks, TimedBatch
from headwater.common.errors import HeadwaterError, RejectedRecordError, UserCodeError
from headwater.common.ids import MAX_WATERMARK
from headwater.common.rejected import REJECTED_TAG_ID, Rejected
from headwater.graph.plan import SourceSpec
from headwater.runtime.epoch.messages import EpochHeader, EpochOutcome, SourceAck, SourceTask, SplitAck, SplitAssignment
from headwater.runtime.stage.ports import Fan
from headwater.runtime.stage.readers import OpenReader, Readers
from headwater.runtime.stage.runner import StageRunner
from headwater.state.copying import all_captured
from headwater.state.operator_backend import OperatorStateBackend

REJECTED = "numRecordsInErrors"
"""The counter of rejected records: Flink's name."""


def run_source_task(
    runner: StageRunner, task: SourceTask, spec: SourceSpec, header: EpochHeader, readers: Readers
) -> Iterator[SplitAck | SourceAck | None]:
    """Read the task's splits. Yield None after each batch, so that the caller can send the output on."""
    attempt, total = header.attempt, EpochOutcome()
    for ordinal, assignment in enumerate(task.splits):
        states = runner.restore_split_operators(load_operator_state(assignment.operator_state))
        runner.begin_epoch(
            attempt.epoch, f"{attempt.id}-{task.index}-{ordinal}", header.now_ms, assignment.watermarks,
            source_id=task.source_id, channel=assignment.split.split_id, refusals=header.refusals,
        )  # fmt: skip
        read = _Read()
        yield from _read_split(runner, spec, assignment, header, readers, read)
        outcome = runner.finish_epoch(header.now_ms, ended=read.finished)
        total.add(outcome)
        yield SplitAck(
            task.source_id, assignment.split.split_id, read.position, read.records, read.finished,
            dump_operator_state(states), outcome.watermarks, read.counters, bool(outcome.figures.idle),
            read.gauges,
        )  # fmt: skip
    if task.marker is not None:
        runner.restore_split_operators({})
        runner.begin_epoch(
            attempt.epoch, f"{attempt.id}-{task.index}-marker", header.now_ms, task.marker,
            source_id=task.source_id, channel="source", refusals=header.refusals,
        )  # fmt: skip
        if header.letters:
            runner.replay(header.letters, task.source_id)
            runner.restore_split_operators({})  # event time is the splits': letters do not move it
        if task.final:
            runner.source_output(task.source_id).emit_watermark(MAX_WATERMARK)
        total.add(runner.finish_epoch(header.now_ms, ended=task.exhausted))
        yield None
    yield SourceAck(task.index, total, task.source_id, task.subtask)


@dataclass
class _Read:
    """What was read of a split in this epoch."""

    records: int = 0
    finished: bool = False
    position: bytes = b""
    counters: dict[str, int] = field(default_factory=dict)
    gauges: dict[str, float] = field(default_factory=dict)
    rejected: int = 0


def _read_split(
    runner: StageRunner,
    spec: SourceSpec,
    assignment: SplitAssignment,
    header: EpochHeader,
    readers: Readers,
    read: _Read,
) -> Iterator[None]:
    """Read the split up to its budget and pass its records on. Yields after each batch; says in `read` how far."""
    output, busy = runner.source_output(spec.id), runner.busy
    opened: OpenReader | None = None
    try:
        opened = readers.open(spec.id, spec.source, assignment)
        reader = opened.reader
        while (left := assignment.budget - read.records - read.rejected) > 0:
            busy.enter(spec.uid)
            records = reader.read_batch(min(reader.batch_records or header.batch_records, left))
            rejected = reader.rejected()
            if rejected:
                _reject(output, spec, rejected, read)
            if not records:
                busy.leave_uncounted()
                read.finished = records is None
                if rejected and records is not None:
                    continue  # they were there: more may be
                break
            read.records += records.rows if isinstance(records, Blocks) else len(records)
            timestamps = records.timestamps if isinstance(records, TimedBatch) else None
            output.emit(records if reader.gives_away else all_captured(records), timestamps)
            busy.enter(None)
            yield None
        read.position = pickle.dumps(reader.position(), 5)
        read.counters = opened.newly_counted()
        if read.rejected:
            read.counters[REJECTED] = read.counters.get(REJECTED, 0) + read.rejected
        read.gauges = reader.gauges()
        readers.done(opened, read.position, finished=read.finished)
        opened = None
    except HeadwaterError:
        raise
    except Exception as error:
        what = f"split {assignment.split.split_id}"
        raise UserCodeError.from_exception(error, spec.name, what, header.attempt.epoch) from error
    finally:
        if opened is not None:
            readers.failed(opened)


def _reject(output: Fan, spec: SourceSpec, rejected: list[Rejected], read: _Read) -> None:
    """Pass on what the reader rejected. Nothing is thrown away in silence: somebody must take it."""
    if not output.sides.get(REJECTED_TAG_ID):
        first = rejected[0]
        raise RejectedRecordError(
            f"source '{spec.name}' cannot read the record at {first.where}: {first.error}; correct the input or its "
            "format, or give the stream a place for such records (with_dead_letters)"
        )
    read.rejected += len(rejected)
    output.emit_side(REJECTED_TAG_ID, list(rejected), None)


def read_dataframe(
    runner: StageRunner, header: EpochHeader, source_id: int, partition: int, batches: Iterable[list[Any]]
) -> Iterator[SplitAck | SourceAck | None]:
    """Push the rows of one partition of a DataFrame on. Yields None after each batch, as `run_source_task` does."""
    state, watermarks = header.dataframe_state.get(source_id, (b"", {}))
    states = runner.restore_split_operators(load_operator_state(state))
    runner.begin_epoch(
        header.attempt.epoch, f"{header.attempt.id}-df{source_id}-{partition}", header.now_ms, watermarks,
        source_id=source_id, channel=f"df-{partition}", refusals=header.refusals,
    )  # fmt: skip
    output = runner.source_output(source_id)
    count = 0
    uid = next(source.uid for source in runner.sources if source.id == source_id)
    for rows in batches:
        runner.busy.enter(uid)
        output.emit(rows, None)
        runner.busy.enter(None)
        count += len(rows)
        yield None
    outcome = runner.finish_epoch(header.now_ms, ended=header.dataframe_bounded)
    yield SplitAck(source_id, f"df-{partition}", b"", count, False, dump_operator_state(states), outcome.watermarks)
    yield SourceAck(partition, outcome, source_id, partition)


def load_operator_state(data: bytes) -> dict[str, OperatorStateBackend]:
    """Return {uid: backend} of the operators whose state belongs to a split."""
    backends: dict[str, OperatorStateBackend] = {}
    for section in pickle.loads(data) if data else ():
        backend = backends.setdefault(section.uid, OperatorStateBackend(section.uid))
        backend.load_section(section)
    return backends


def dump_operator_state(backends: dict[str, OperatorStateBackend]) -> bytes:
    """Encode the backends for `load_operator_state`."""
    sections = [section for backend in backends.values() for section in backend.full_sections()]
    return pickle.dumps(sections, 5) if sections else b""
