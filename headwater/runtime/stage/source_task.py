"""Stage 0: reads splits and pushes their records through the operators chained to the source."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from typing import Any

from headwater.common.errors import HeadwaterError, UserCodeError
from headwater.common.ids import MAX_WATERMARK
from headwater.runtime.epoch.messages import (
    Attempt,
    EpochHeader,
    EpochOutcome,
    SourceAck,
    SourceTask,
    SplitAck,
    SplitAssignment,
)
from headwater.runtime.stage.runner import StageRunner
from headwater.state.copying import all_captured
from headwater.state.operator_backend import OperatorStateBackend


def run_source_task(
    runner: StageRunner, task: SourceTask, source: Any, source_name: str, attempt: Attempt, now_ms: int, batch: int
) -> Iterator[SplitAck | SourceAck | None]:
    """Read the task's splits. Yield None after each batch, so that the caller can send the output on."""
    total = EpochOutcome()
    for ordinal, assignment in enumerate(task.splits):
        yield from _read_split(runner, task, assignment, source, source_name, attempt, ordinal, now_ms, batch, total)
    if task.marker is not None:
        runner.restore_split_operators({})
        runner.begin_epoch(
            attempt.epoch, f"{attempt.id}-{task.index}-marker", now_ms, task.marker,
            source_id=task.source_id, channel="source",
        )  # fmt: skip
        if task.final:
            runner.source_output(task.source_id).emit_watermark(MAX_WATERMARK)
        total.add(runner.finish_epoch(now_ms, ended=task.exhausted))
        yield None
    yield SourceAck(task.index, total)


def _read_split(
    runner: StageRunner,
    task: SourceTask,
    assignment: SplitAssignment,
    source: Any,
    source_name: str,
    attempt: Attempt,
    ordinal: int,
    now_ms: int,
    batch: int,
    total: EpochOutcome,
) -> Iterator[SplitAck | None]:
    split = assignment.split
    states = runner.restore_split_operators(load_operator_state(assignment.operator_state))
    runner.begin_epoch(
        attempt.epoch, f"{attempt.id}-{task.index}-{ordinal}", now_ms, assignment.watermarks,
        source_id=task.source_id, channel=split.split_id,
    )  # fmt: skip
    output = runner.source_output(task.source_id)
    position = None if assignment.position is None else pickle.loads(assignment.position)
    finished, count = False, 0
    try:
        reader = source.open_reader(split, position)
        try:
            while count < assignment.budget:
                records = reader.read_batch(min(batch, assignment.budget - count))
                if records is None:
                    finished = True
                    break
                if not records:
                    break
                count += len(records)
                timestamps = source.timestamps_of(records)
                output.emit(records if reader.gives_away else all_captured(records), timestamps)
                yield None
            position = reader.position()
            counters = reader.counters()
        finally:
            reader.close()
    except HeadwaterError:
        raise
    except Exception as error:
        raise UserCodeError.from_exception(error, source_name, f"split {split.split_id}", attempt.epoch) from error
    outcome = runner.finish_epoch(now_ms, ended=finished)
    total.add(outcome)
    yield SplitAck(
        task.source_id, split.split_id, pickle.dumps(position, 5), count, finished, dump_operator_state(states),
        outcome.watermarks, counters,
    )  # fmt: skip


def read_dataframe(
    runner: StageRunner, header: EpochHeader, source_id: int, partition: int, batches: Iterable[list[Any]]
) -> Iterator[SplitAck | SourceAck | None]:
    """Push the rows of one partition of a DataFrame on. Yields None after each batch, as `run_source_task` does."""
    state, watermarks = header.dataframe_state.get(source_id, (b"", {}))
    states = runner.restore_split_operators(load_operator_state(state))
    runner.begin_epoch(
        header.attempt.epoch, f"{header.attempt.id}-df{source_id}-{partition}", header.now_ms, watermarks,
        source_id=source_id, channel=f"df-{partition}",
    )  # fmt: skip
    output = runner.source_output(source_id)
    count = 0
    for rows in batches:
        output.emit(rows, None)
        count += len(rows)
        yield None
    outcome = runner.finish_epoch(header.now_ms, ended=header.dataframe_bounded)
    yield SplitAck(source_id, f"df-{partition}", b"", count, False, dump_operator_state(states), outcome.watermarks)
    yield SourceAck(partition, outcome)


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
