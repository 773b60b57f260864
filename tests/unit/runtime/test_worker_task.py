"""Tasks in Python workers, without Spark: what a failed one says, and that nothing of it stays behind."""

from __future__ import annotations

import errno
import os
import pickle
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

from headwater.common import Encoder, WatermarkStrategy
from headwater.common.errors import SerializationError
from headwater.common.ids import Place
from headwater.datastream.connectors.bulk_writers import EncodedWriter
from headwater.datastream.connectors.data_generator import DataGeneratorSource
from headwater.datastream.connectors.file_system import BucketAssigner, FileSink
from headwater.graph.plan import JobPlan
from headwater.runtime.epoch.chunk import EVERY, FrameKind, Header, encode_frame, payload_of
from headwater.runtime.epoch.failure import AttemptFailedError, FailureReason
from headwater.runtime.epoch.messages import Attempt, Base, EpochHeader, SourceAck, SourceTask
from headwater.runtime.job.source_progress import SplitSourceProgress
from headwater.runtime.main_module import capture_main
from headwater.runtime.slot.starter import SlotLaunch
from headwater.runtime.spark.tasks import StageTask, operator_stage, source_stage
from headwater.runtime.spark.worker_job import WorkerJob
from tests.unit.runtime.in_process_engine import plan_of

NUMBERS = DataGeneratorSource(str, 2)


@pytest.fixture
def launch(tmp_path: Path) -> Iterator[SlotLaunch]:
    """A job that writes numbers to files, in the source's own task."""
    sink: Any = (
        FileSink.for_row_format(str(tmp_path), Encoder.simple_string_encoder())
        .with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
        .build()
    )
    plan = plan_of(lambda env: env.from_source(NUMBERS, WatermarkStrategy.no_watermarks(), "numbers"), 1, sink)
    made = SlotLaunch("job", uuid.uuid4().hex, b"", cloudpickle.dumps(plan), (1,), capture_main(), None, False)
    yield made
    WorkerJob._known.pop(made.run_id, None)


def source_tasks(plan: JobPlan) -> Sequence[SourceTask]:
    progress = SplitSourceProgress(plan.sources[0], None)
    progress.discover(1)
    return progress.plan(0, 100, 1, final=False)


def run(launch: SlotLaunch, number: int) -> list[Any]:
    """One attempt of the first epoch: what its tasks tell the driver."""
    attempt = Attempt(1, 0, number, "run")
    header = EpochHeader(attempt, Base(-1, "start", -1, "start"), 1, False, False)
    frames = [
        frame for task in source_tasks(pickle.loads(launch.plan)) for _, frame in source_stage(header, launch, task)
    ]
    return [pickle.loads(payload_of(frame)) for frame in frames]


def test_a_full_disk_is_tried_again_and_its_file_goes(
    launch: SlotLaunch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    def full_disk(writer: Any, _: Any) -> None:
        writer._file.write(b"half of it")
        writer._file.flush()
        seen.extend(os.listdir(tmp_path))
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(EncodedWriter, "add_batch", full_disk)
        (failure,) = run(launch, 0)
    assert isinstance(failure, AttemptFailedError) and failure.reason is FailureReason.LOCAL_DISK
    assert f"cannot be written to {tmp_path}: No space left on device; make room there" in str(failure)
    assert len(seen) == 1 and os.listdir(tmp_path) == [], "each attempt would leave more on a full disk"

    *_, ack = run(launch, 1)
    assert isinstance(ack, SourceAck)
    (name,) = os.listdir(tmp_path)
    assert (tmp_path / name).read_text() == "0\n1\n"


def test_a_plan_that_cannot_be_loaded_is_the_users_error_at_once(launch: SlotLaunch) -> None:
    """It reaches the driver as any other error, by way of the next stage's tasks, which cannot load the plan either."""
    task = source_tasks(pickle.loads(launch.plan))[0]
    broken = replace(launch, run_id=uuid.uuid4().hex, plan=b"cnowhere_at_all\nNeeded\n.", parallelisms=(1, 3))
    header = EpochHeader(Attempt(1, 0, 0, "run"), Base(-1, "start", -1, "start"), 1, False, False)
    routed = list(source_stage(header, broken, task))
    assert [target for target, _ in routed] == [0, 1, 2]
    ((_, frame),) = operator_stage(broken, 1, 0, [frame for _, frame in routed[:1]])
    failure = pickle.loads(payload_of(frame))
    assert isinstance(failure.error, SerializationError)
    assert "cannot be loaded in a Python worker" in str(failure)
    assert str(failure).count("No module named 'nowhere_at_all'") == 1, "said once"


@pytest.mark.parametrize(
    ("stage", "target", "expected"),
    [(1, 2, [2]), (1, EVERY, [0, 1, 2]), (2, 4, [1]), (2, EVERY, [1])],
    ids=["one", "every", "one of a later stage", "every one of a later stage"],
)
def test_a_frame_goes_to_the_partitions_of_the_next_stage_or_through_one(
    launch: SlotLaunch, stage: int, target: int, expected: list[int]
) -> None:
    task = StageTask(replace(launch, parallelisms=(5, 3, 5)), Place(0, 4))
    header = Header(FrameKind.END, stage, target, 1, "0/0", 0, 7)
    frame = encode_frame(header)
    assert list(task.send_on(header, frame)) == [(each, frame) for each in expected]
