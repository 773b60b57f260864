"""What the engine's stages cost per record, in one process, without Spark.

    python -m benchmarks.stages

The keyed count as Spark's workers and the slots run it (read, map, route and pickle; unpickle and process), and a chain
of map, filter and map with records of three fields. Prints nanoseconds of processor time per record: the
least of several rounds, because whatever else runs on the machine only adds to it.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable
from typing import Any

from benchmarks.headwater_job import CountingSink
from benchmarks.keyed_count.headwater_job import CountAndSum
from benchmarks.workload import StampDir, key_of
from headwater.common import Configuration, WatermarkStrategy
from headwater.common.connector import Split
from headwater.datastream import DataStream, StreamExecutionEnvironment
from headwater.datastream.connectors.number_seq import NumberSequenceSource
from headwater.graph.plan import JobPlan
from headwater.runtime.epoch.chunk import FrameKind, decode_header, decode_records, payload_of
from headwater.runtime.epoch.messages import Attempt, Base, EpochHeader, SourceTask, SplitAssignment
from headwater.runtime.stage.readers import Readers
from headwater.runtime.stage.runner import StageRunner
from headwater.runtime.stage.source_task import run_source_task
from headwater.runtime.stage.wiring import RunnerIdentity

RECORDS = 200_000
KEYS = 1000


def keyed_count(numbers: DataStream) -> DataStream:
    keyed = numbers.map(lambda number: (key_of(number, KEYS), number)).key_by(lambda record: record[0])
    return keyed.process(CountAndSum())


def chain(numbers: DataStream) -> DataStream:
    triples = numbers.map(lambda number: (number, "name", 0.5))
    return triples.filter(lambda record: record[0] >= 0).map(lambda record: (record[0], record[1], 1.5))


def chain_of_numbers(numbers: DataStream) -> DataStream:
    return numbers.map(lambda number: number + 1).filter(lambda number: number >= 0).map(lambda number: number - 1)


def plan_of(program: Callable[[DataStream], DataStream]) -> JobPlan:
    env = StreamExecutionEnvironment.get_execution_environment(Configuration())
    env.set_parallelism(2)
    source = NumberSequenceSource(0, RECORDS - 1)
    program(env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")).sink_to(CountingSink(StampDir("")))
    return env._plan("stages")[0]


class FirstStage:
    """Reads the numbers and runs what is chained to the source."""

    def __init__(self, plan: JobPlan) -> None:
        self._frames: list[bytes] = []
        self._source = plan.sources[0]
        self._runner = StageRunner(plan, 0, RunnerIdentity("job", 0), lambda target, frame: self._frames.append(frame))
        self._runner.open()

    def run(self) -> list[bytes]:
        self._frames.clear()
        split = SplitAssignment(Split("all", (0, RECORDS)), None, RECORDS, b"", {})
        task = SourceTask(0, self._source.id, 0, (split,))
        header = EpochHeader(Attempt(1, 0, 0, "a"), Base(-1, "", -1, ""), 0, False, False)
        for _ in run_source_task(self._runner, task, self._source, header, Readers()):
            pass
        return self._frames


class SecondStage:
    """Processes frames, as a slot does."""

    def __init__(self, plan: JobPlan, frames: list[bytes]) -> None:
        self._chunks = [frame for frame in frames if decode_header(frame).kind == FrameKind.DATA]
        self._runner = StageRunner(plan, 1, RunnerIdentity("job", 0), lambda target, frame: None)
        self._runner.open()
        self._epoch = 0

    def run(self) -> None:
        self._epoch += 1
        for backend in self._runner.backends():
            backend.begin_epoch()
        self._runner.begin_epoch(self._epoch, str(self._epoch), self._epoch, {})
        for chunk in self._chunks:
            values, timestamps = decode_records(payload_of(chunk))
            self._runner.batch(decode_header(chunk).edge, values, timestamps)
        self._runner.finish_epoch(self._epoch)
        for backend in self._runner.backends():
            backend.commit_epoch(cut=False)


def least(work: Callable[[], Any], rounds: int) -> float:
    """Nanoseconds of processor time per record, in the best of `rounds`."""
    work()
    spent = []
    for _ in range(rounds):
        gc.collect()
        gc.disable()  # as in a slot within an epoch
        started = time.process_time()
        work()
        spent.append(time.process_time() - started)
        gc.enable()
    return min(spent) * 1e9 / RECORDS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    plan = plan_of(keyed_count)
    first = FirstStage(plan)
    second = SecondStage(plan, list(first.run()))
    reading, counting = least(first.run, rounds), least(second.run, rounds)
    triples, numbers = (least(FirstStage(plan_of(program)).run, rounds) for program in (chain, chain_of_numbers))
    print(
        f"keyed count {reading + counting:.0f} ns (read, map, route {reading:.0f}; count {counting:.0f}), "
        f"chain of triples {triples:.0f}, chain of numbers {numbers:.0f}"
    )


if __name__ == "__main__":
    main()
