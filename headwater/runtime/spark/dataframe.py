"""DataFrames as sources: a task of stage 0 reads each partition of the DataFrame, as Rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark import RDD, TaskContext

from headwater.common.ids import Place
from headwater.common.types import Row
from headwater.runtime.epoch.messages import EpochHeader
from headwater.runtime.slot.starter import SlotLaunch
from headwater.runtime.spark.tasks import StageTask
from headwater.runtime.spark.worker_job import WorkerJob
from headwater.runtime.stage.runners import Routed
from headwater.runtime.stage.source_task import read_dataframe

_SCHEMA = "target int, frame binary"
_ARROW_SCHEMA = pa.schema([("target", pa.int32()), ("frame", pa.binary())])


def dataframe_frames(dataframe: Any, header: EpochHeader, launch: SlotLaunch, source_id: int) -> RDD[Any]:
    """Return the frames that stage 0 makes of a DataFrame, as rows of (target, frame)."""
    rdd: RDD[Any] = dataframe.mapInArrow(partial(_run_partition, header, launch, source_id), _SCHEMA).rdd
    return rdd


def _run_partition(
    header: EpochHeader, launch: SlotLaunch, source_id: int, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    context = TaskContext.get()
    partition = context.partitionId() if context is not None else 0
    task = StageTask(launch, Place(0, partition))
    for target, frame in task.guarded(lambda: _read(header, launch, source_id, partition, batches, task)):
        yield pa.RecordBatch.from_arrays(
            [pa.array([target], pa.int32()), pa.array([frame], pa.binary())], schema=_ARROW_SCHEMA
        )
    for _ in batches:  # after an error: read the rest, otherwise Spark cannot reuse the worker
        pass


def _read(
    header: EpochHeader,
    launch: SlotLaunch,
    source_id: int,
    partition: int,
    batches: Iterable[pa.RecordBatch],
    task: StageTask,
) -> Iterator[Routed]:
    job = WorkerJob.of(launch)
    runner, outbox = job.runners.borrow(Place(0, partition), header.attempt.incarnation)
    rows = (
        _rows(batch.slice(start, header.batch_records))
        for batch in batches
        for start in range(0, batch.num_rows, header.batch_records)
    )
    for message in read_dataframe(runner, header, source_id, partition, rows):
        yield from task.route(outbox)
        outbox.clear()
        if message is not None:
            yield from task.to_driver(message)
    job.runners.give_back(Place(0, partition), runner, outbox)


def _rows(batch: pa.RecordBatch) -> list[Row]:
    names = batch.schema.names
    columns = [column.to_pylist() for column in batch.columns]
    rows = []
    for values in zip(*columns, strict=True):
        row = Row(*values)
        row.set_field_names(names)
        rows.append(row)
    return rows
