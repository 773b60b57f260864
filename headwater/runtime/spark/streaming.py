"""Jobs with streaming DataFrames: Structured Streaming calls `_on_batch` for each micro-batch, which is an epoch.

Spark writes a micro-batch's offsets to its log before it calls us and notes the batch as done after we returned. Our
manifest stands between the two, and keeps these offsets. Before Spark starts again its files are made what the manifest
says (spark_offsets.py), so that it repeats the manifest's own batch, which counts already and is skipped.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from headwater.checkpoint.paths import CheckpointLayout
from headwater.checkpoint.spark_offsets import SparkRecorder, restore_spark
from headwater.common.errors import CheckpointError
from headwater.runtime.epoch.decisions import Cancel, Pace, Run, Serve, decide
from headwater.runtime.job.coordinator import Coordinator
from headwater.runtime.job.dataframe_progress import DataFrameProgress
from headwater.runtime.job.endings import JobCancelledError, WentBackError
from headwater.runtime.job.facts import gather_facts
from headwater.runtime.job.serving import serve_requests
from headwater.runtime.spark.quiet_session import quiet_callbacks

_SOURCE = "__headwater_source"
_TICK = -1
_WAIT_SECONDS = 0.2


class StreamingQueryDriver:
    """Runs a coordinator's epochs from a streaming query."""

    def __init__(self, coordinator: Coordinator, pace: Pace) -> None:
        self._coordinator = coordinator
        self._pace = pace
        self._streams = [source for source in coordinator.sources.dataframes if source.streaming]
        self._error: BaseException | None = None
        self._in_epoch = False
        self._recorder: SparkRecorder | None = None
        # Sources that we read ourselves get their turn only in a micro-batch: without ticks they would have to wait
        # for data of the others.
        self._ticks = pace.tick_ms is not None or bool(coordinator.sources.splits)

    def run(self, layout: CheckpointLayout | None) -> None:
        """Run until the job is cancelled or fails: a streaming DataFrame has no end."""
        known = quiet_callbacks(lambda error: error is self._error)
        with tempfile.TemporaryDirectory(prefix="headwater-spark-") as scratch, known:
            location = layout.spark if layout is not None else Path(scratch)
            if layout is not None:
                restore_spark(location, self._coordinator.last.spark)
                self._recorder = SparkRecorder(location)
            writer = self._input().writeStream.foreachBatch(self._on_batch).option("checkpointLocation", str(location))
            query = writer.trigger(processingTime=f"{max(self._pace.epoch_ms // 10, 1)} milliseconds").start()
            try:
                while not query.awaitTermination(_WAIT_SECONDS):
                    # Stopping a query during an epoch makes Spark throw. Then `_on_batch` ends the query instead.
                    if self._coordinator.cancelled and not self._in_epoch:
                        query.stop()
            except StreamingQueryException as error:
                if self._error is None and not self._coordinator.cancelled:
                    self._error = _about_state(error, location)
        if self._error is not None:
            raise self._error
        if self._coordinator.cancelled:
            raise JobCancelledError

    def _input(self) -> DataFrame:
        """Return one streaming DataFrame of all streams. Of several, each has a column of its own, and rows a tag."""
        if len(self._streams) == 1 and not self._ticks:
            frame: DataFrame = self._streams[0].dataframe
            return frame
        parts = [
            stream.dataframe.select(F.lit(stream.spec.id).alias(_SOURCE), F.struct("*").alias(_column(stream)))
            for stream in self._streams
        ]
        if self._ticks:
            session = self._streams[0].dataframe.sparkSession
            rate = session.readStream.format("rate").option("rowsPerSecond", 1).load()
            parts.append(rate.select(F.lit(_TICK).alias(_SOURCE)))
        union: DataFrame = parts[0]
        for part in parts[1:]:
            union = union.unionByName(part, allowMissingColumns=True)
        return union

    def _split(self, batch: DataFrame) -> dict[int, Any]:
        if len(self._streams) == 1 and not self._ticks:
            return {self._streams[0].spec.id: batch}
        return {
            stream.spec.id: batch.where(F.col(_SOURCE) == stream.spec.id).select(f"{_column(stream)}.*")
            for stream in self._streams
        }

    def _on_batch(self, batch: DataFrame, batch_id: int) -> None:
        self._in_epoch = True
        before = self._last_batch()
        try:
            while not self._is_done(batch, batch_id, before):
                pass
        except BaseException as error:
            self._error = error
            raise
        finally:
            self._in_epoch = False

    def _is_done(self, batch: DataFrame, batch_id: int, before: int) -> bool:
        """Do what comes next. Return True if the batch counts; `before` is the last one that did when it came."""
        coordinator = self._coordinator
        try:
            facts = gather_facts(coordinator, self._pace, micro_batch=True)
            match decide(facts):
                case Cancel():
                    raise JobCancelledError
                case Serve():
                    serve_requests(coordinator)
                case Run() as run if batch_id > self._last_batch():
                    self._run_batch(run, facts.now_ms, batch, batch_id)
                    return True
                case _:  # its manifest exists: Spark crashed before it noted the batch as done
                    return True
        except WentBackError:
            if self._last_batch() not in (before, batch_id):
                raise  # Spark would have to go back further than this batch: that needs a new start
        return False

    def _last_batch(self) -> int:
        found: int = self._coordinator.last.spark.get("batch_id", -1)
        return found

    def _run_batch(self, run: Run, now_ms: int, batch: DataFrame, batch_id: int) -> None:
        coordinator = self._coordinator
        if len(self._streams) > 1 or self._ticks:  # it is evaluated more than once
            batch.persist()
        try:
            spark = self._recorder.record(batch_id) if self._recorder is not None else {"batch_id": batch_id}
            coordinator.run_epoch(coordinator.plan_epoch(run, now_ms, self._split(batch), spark))
        finally:
            batch.unpersist()


def _about_state(error: BaseException, location: Path) -> BaseException:
    """The error, or what to do about it if Spark cannot read the state that it keeps for a DataFrame."""
    if "STATE_STORE" not in str(error):
        return error
    return CheckpointError(
        f"Spark cannot read what it keeps for a DataFrame with state in {location / 'state'}: {error}. Restore the "
        "directory from a copy"
    )


def _column(stream: DataFrameProgress) -> str:
    return f"source_{stream.spec.id}"
