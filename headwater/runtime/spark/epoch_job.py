"""One epoch attempt as one Spark job: stage 0 → shuffle → stage 1 → … → acknowledgements.

Uses RDDs of bytes, not DataFrames: there is nothing to optimise in an epoch, and planning a DataFrame costs more than
running a small epoch (docs/decisions/0001).
"""

from __future__ import annotations

import contextlib
import pickle
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark import RDD, SparkContext
from pyspark.errors import PySparkException
from pyspark.serializers import NoOpSerializer, pack_long

from headwater.common.errors import HeadwaterError
from headwater.graph.plan import JobPlan
from headwater.runtime.epoch.chunk import payload_of
from headwater.runtime.epoch.engine import EngineLostError
from headwater.runtime.epoch.failure import AttemptFailedError, FailureReason, worst
from headwater.runtime.epoch.messages import EpochHeader, SourceTask
from headwater.runtime.slot.starter import SlotLaunch
from headwater.runtime.spark.envelopes import header_frames, load_source_input, source_inputs
from headwater.runtime.spark.tasks import operator_stage, source_stage
from headwater.runtime.spark.worker_job import Routed

_LENGTH = struct.Struct(">i")


class SparkEngine:
    """Runs epoch attempts of one job."""

    def __init__(self, context: SparkContext, plan: JobPlan, launch: SlotLaunch) -> None:
        self._context = context
        self._plan = plan
        self._launch = context.broadcast(launch)
        self._group = launch.run_id
        # Look these up once: each name in a dotted path is a round trip to the JVM.
        python = context._jvm.org.apache.spark.api.python
        self._pairwise, self._partitioner = python.PairwiseRDD, python.PythonPartitioner
        self._values = python.PythonRDD.valueOfPair
        self._read_stream = python.PythonRDD.readRDDFromInputStream
        self._byte_stream = context._jvm.java.io.ByteArrayInputStream
        self._scala_context = context._jsc.sc()

    def run(self, header: EpochHeader, tasks: Sequence[SourceTask], dataframes: Mapping[int, Any]) -> list[Any]:
        """Run one attempt; return the acknowledgements. Raises `AttemptFailedError` if it cannot complete."""
        context = self._context
        context.setJobGroup(self._group, f"{self._plan.name}: epoch {header.attempt.epoch}", False)
        try:
            frames = self._build(header, tasks, dataframes).collect()
        except Py4JNetworkError as error:
            raise EngineLostError(f"Spark's JVM is gone: {error}") from None
        except (Py4JError, PySparkException) as error:  # a SparkSession translates the former into the latter
            raise self._describe(error) from None  # a wall of Java explains nothing to the user
        messages = [pickle.loads(payload_of(frame)) for frame in frames]
        failures = [message for message in messages if isinstance(message, AttemptFailedError)]
        if failures:
            raise worst(failures)
        return messages

    def cancel(self) -> None:
        """Give the attempt under way up."""
        if self._context._jsc is not None:  # else the program has stopped Spark, and the attempt with it
            self._context.cancelJobGroup(self._group)

    def close(self) -> None:
        """Delete the job's broadcast variable."""
        with contextlib.suppress(Exception):  # the context may be gone already
            self._launch.destroy()

    def _build(self, header: EpochHeader, tasks: Sequence[SourceTask], dataframes: Mapping[int, Any]) -> RDD[Any]:
        last = len(self._plan.stages) == 1
        emit = _frames_only if last else _keyed
        frames = [] if last else header_frames(header, [stage.parallelism for stage in self._plan.stages])
        parts: list[RDD[Any]] = []
        if tasks:
            inputs = self._parallelize(source_inputs(header, tasks, frames), len(tasks))
            parts.append(inputs.mapPartitions(partial(_run_sources, self._launch, emit), True))
        elif frames:  # no task of ours runs in stage 0: the JVM alone sends the frames on
            parts.append(self._parallelize(_keyed(frames), 1))
        for source_id, dataframe in dataframes.items():
            from headwater.runtime.spark.dataframe import dataframe_frames  # with pyarrow, which few jobs need

            rows = dataframe_frames(dataframe, header.for_place(None), self._launch.value, source_id)
            parts.append(rows.mapPartitions(partial(_emit_rows, emit), True))
        if last:
            return parts[0] if len(parts) == 1 else self._context.union(parts)
        rdd = self._shuffle(parts, self._plan.stages[1].parallelism)
        for stage in self._plan.stages[1:]:
            last = stage.index + 1 == len(self._plan.stages)
            run = partial(_run_stage, self._launch, stage.index, _frames_only if last else _keyed)
            # False: with preservesPartitioning, Spark would skip the next shuffle to the same number of partitions.
            rdd = rdd.mapPartitionsWithIndex(run, False)
            if not last:
                rdd = self._shuffle([rdd], self._plan.stages[stage.index + 1].parallelism)
        return rdd

    def _parallelize(self, elements: Iterable[bytes], partitions: int) -> RDD[bytes]:
        """Like SparkContext.parallelize, but without pickling, and without a temporary file."""
        data = b"".join(part for element in elements for part in (_LENGTH.pack(len(element)), element))
        stream = self._byte_stream(data)
        return RDD(self._read_stream(self._scala_context, stream, partitions), self._context, NoOpSerializer())

    def _shuffle(self, parts: list[RDD[Any]], width: int) -> RDD[Any]:
        """Send each frame to the partition that is its key. Like RDD.partitionBy, but without batching."""
        for part in parts:
            part._bypass_serializer = True
        jrdd = parts[0]._jrdd.rdd()
        for part in parts[1:]:
            jrdd = jrdd.union(part._jrdd.rdd())
        pairs = self._pairwise(jrdd).asJavaPairRDD().partitionBy(self._partitioner(width, 0))
        return RDD(self._values(pairs), self._context, NoOpSerializer())

    def _describe(self, error: Exception) -> AttemptFailedError | EngineLostError:
        if self._context._jsc is None or self._context._jsc.sc().isStopped():
            return EngineLostError("the Spark context was stopped")
        text = str(error.java_exception.getMessage()) if isinstance(error, Py4JJavaError) else str(error)
        reason = text.split("Driver stacktrace")[0].split("\n\tat ")[0].strip()[:4000]  # without Java's stack frames
        # Python code that raised would raise again; after the death of a worker, task or executor, a retry may help.
        if _python_raised(error, reason):
            return AttemptFailedError.of_program(HeadwaterError(f"Spark could not run the epoch: {reason}"))
        return AttemptFailedError(reason, FailureReason.PROCESS_LOST)


def _python_raised(error: Exception, reason: str) -> bool:
    return "PYTHON_EXCEPTION" in reason or type(error).__name__ == "PythonException"


def _keyed(routed: Iterable[Routed]) -> Iterator[bytes]:
    for target, frame in routed:
        yield pack_long(target)
        yield frame


def _frames_only(routed: Iterable[Routed]) -> Iterator[bytes]:
    return (frame for _, frame in routed)


def _run_sources(launch: Any, emit: Any, inputs: Iterable[bytes]) -> Iterator[bytes]:
    (data,) = inputs  # reads to the end: otherwise Spark cannot reuse the worker
    header, task, frames = load_source_input(data)
    result: Iterator[bytes] = emit(chain(frames, source_stage(header, launch.value, task)))
    return result


def _run_stage(launch: Any, stage: int, emit: Any, partition: int, frames: Iterable[bytes]) -> Iterator[bytes]:
    result: Iterator[bytes] = emit(operator_stage(launch.value, stage, partition, frames))
    return result


def _emit_rows(emit: Any, rows: Iterable[Any]) -> Iterator[bytes]:
    result: Iterator[bytes] = emit((row[0], bytes(row[1])) for row in rows)
    return result
