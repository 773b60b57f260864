"""Output of sinks that wait for the disk beside the snapshot: nothing is visible, or accepted, before it is durable."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from headwater.common import WatermarkStrategy
from headwater.common.connector import Committer, SinkWriter, WriterContext
from headwater.common.errors import LocalDiskError
from headwater.datastream import DataStream, StreamExecutionEnvironment
from headwater.datastream.connectors.data_generator import DataGeneratorSource
from headwater.testing import CollectingSink, assert_same_records, in_process

COUNT = 24


class LateSink(CollectingSink):
    """Says in files which of its output is durable, and refuses to commit any other."""

    fails_in_epoch = -1

    def create_writer(self, context: WriterContext) -> SinkWriter:
        return LateWriter(super().create_writer(context), self, context)

    def create_committer(self) -> Committer:
        return CheckingCommitter(super().create_committer(), self)

    def mark(self, token: str) -> str:
        return os.path.join(self.directory, f"{token}.durable")


class LateWriter(SinkWriter):
    def __init__(self, writer: SinkWriter, sink: LateSink, context: WriterContext) -> None:
        self._writer, self._sink, self._context = writer, sink, context
        self._tokens: list[str] = []

    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        self._writer.write_batch(values, timestamps)

    def prepare_commit(self) -> list[Any]:
        parts = self._writer.prepare_commit()
        self._tokens = [part.token for part in parts]
        return parts

    def make_durable(self) -> None:
        failed = os.path.join(self._sink.directory, "failed")
        if self._context.epoch == self._sink.fails_in_epoch and not os.path.exists(failed):
            Path(failed).touch()
            raise LocalDiskError("no room for now")
        for token in self._tokens:
            Path(self._sink.mark(token)).touch()


class CheckingCommitter(Committer):
    def __init__(self, committer: Committer, sink: LateSink) -> None:
        self._committer, self._sink = committer, sink

    def commit(self, committables: list[Any]) -> None:
        for part in committables:
            assert os.path.exists(self._sink.mark(part.token)), "committed before it was durable"
        self._committer.commit(committables)


def in_a_slot(numbers: DataStream) -> DataStream:
    return numbers.key_by(lambda number: number % 3).reduce(lambda _, number: number)


def in_a_worker(numbers: DataStream) -> DataStream:
    return numbers.rebalance().map(lambda number: number)


def at_the_source(numbers: DataStream) -> DataStream:
    return numbers


@pytest.mark.parametrize("checkpoint_epochs", [1, 3])
@pytest.mark.parametrize("place", [in_a_slot, in_a_worker, at_the_source])
def test_output_that_cannot_be_made_durable_fails_its_epoch_only(
    tmp_path: Path, place: Callable[[DataStream], DataStream], checkpoint_epochs: int
) -> None:
    sink = LateSink(str(tmp_path))
    sink.fails_in_epoch = 2
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    source = DataGeneratorSource(lambda i: i, count=COUNT)
    place(env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")).sink_to(sink)
    with in_process(epoch_records=5, checkpoint_epochs=checkpoint_epochs) as here:
        env.execute()
        assert here.jobs[0].client.progress()["restarts"] == 1
    assert os.path.exists(tmp_path / "failed")
    assert_same_records(sink.results(), list(range(COUNT)))
