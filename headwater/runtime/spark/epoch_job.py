"""One epoch attempt as one Spark job: stage 0 → shuffle → stage 1 → … → acknowledgements.

Uses RDDs of bytes, not DataFrames: there is nothing to optimise in an epoch, and planning a DataFrame costs more than
running a small epoch (docs/decisions/0001).
"""

from __future__ import annotations

import contextlib
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.serializers import pack_long

from headwater.common.errors import HeadwaterError
from headwater.graph.plan import JobPlan
from headwater.runtime.epoch.chunk import payload_of
from headwater.runtime.epoch.engine import EngineLostError
from headwater.runtime.epoch.failure import AttemptFailedError, FailureReason, worst
from headwater.runtime.epoch.messages import EpochHeader, SourceTask
from headwater.runtime.slot.starter import SlotLaunch
from headwater.runtime.spark.envelopes import header_frames, load_source_input, source_inputs
from headwater.runtime.spark.rdds import RddFactory
from headwater.runtime.spark.tasks import operator_stage, source_stage
from headwater.runtime.stage.runners import Routed

Emit = Callable[[Iterable[Routed]], Iterator[bytes]]
"""What a stage's task returns of its frames: with their targets, unless it is the last stage."""


class SparkEngine:
    """Runs epoch attempts of one job."""

    def __init__(self, context: SparkContext, plan: JobPlan, launch: SlotLaunch) -> None:
        self._context = context
        self._plan = plan
        self.launch = context.broadcast(launch)
        self._group = launch.run_id
        self._rdds = RddFactory(context)
        self._functions = [self._rdds.function(partial(_run_sources, self.launch, self._emit(0)))] + [
            self._rdds.function(partial(_run_stage, self.launch, stage.index, self._emit(stage.index)))
            for stage in plan.stages[1:]
        ]
        """One per stage."""

    def run(self, header: EpochHeader, tasks: Sequence[SourceTask], dataframes: Mapping[int, Any]) -> list[Any]:
        """Run one attempt; return the acknowledgements. Raises `AttemptFailedError` if it cannot complete."""
        context = self._context
        try:
            context.setJobGroup(self._group, f"{self._plan.name}: epoch {header.attempt.epoch}", False)
            frames = self._rdds.collect(self._build(header, tasks, dataframes))
        except (Py4JNetworkError, ConnectionRefusedError) as error:
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
            self.launch.destroy()

    def _build(self, header: EpochHeader, tasks: Sequence[SourceTask], dataframes: Mapping[int, Any]) -> Any:
        rdds, stages = self._rdds, self._plan.stages
        frames = [] if len(stages) == 1 else header_frames(header, [stage.parallelism for stage in stages])
        parts: list[Any] = []
        if tasks:
            inputs = rdds.parallelize(source_inputs(header, tasks, frames), len(tasks))
            parts.append(rdds.apply(self._functions[0], inputs))
        elif frames:  # no task of ours runs in stage 0: the JVM alone sends the frames on
            parts.append(rdds.parallelize(_keyed(frames), 1))
        for source_id, dataframe in dataframes.items():
            from headwater.runtime.spark.dataframe import dataframe_frames  # with pyarrow, which few jobs need

            rows = dataframe_frames(dataframe, header.for_place(None), self.launch.value, source_id)
            parts.append(rdds.of_pyspark(rows.mapPartitions(partial(_emit_rows, self._emit(0)), True)))
        rdd = rdds.union(parts)
        for stage in stages[1:]:
            rdd = rdds.apply(self._functions[stage.index], rdds.shuffle(rdd, stage.parallelism))
        return rdd

    def _emit(self, stage: int) -> Emit:
        return _frames_only if stage + 1 == len(self._plan.stages) else _keyed

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


def _run_sources(launch: Any, emit: Emit, index: int, inputs: Iterable[bytes]) -> Iterator[bytes]:
    (data,) = inputs  # reads to the end: otherwise Spark cannot reuse the worker
    header, task, frames = load_source_input(data)
    return emit(chain(frames, source_stage(header, launch.value, task)))


def _run_stage(launch: Any, stage: int, emit: Emit, partition: int, frames: Iterable[bytes]) -> Iterator[bytes]:
    return emit(operator_stage(launch.value, stage, partition, frames))


def _emit_rows(emit: Emit, rows: Iterable[Any]) -> Iterator[bytes]:
    return emit((row[0], bytes(row[1])) for row in rows)
