"""`execute_and_collect`: records arrive as they are committed, errors after them, and closing stops the job."""

from __future__ import annotations

import pickle
import threading

import pytest

from headwater.common.connector import WriterContext
from headwater.datastream import CloseableIterator, DataStream, StreamExecutionEnvironment
from headwater.datastream.executor import set_executor

from .recording_executor import RecordedJob, RecordingExecutor


@pytest.fixture
def executor():
    recording = RecordingExecutor(lambda job, plan: None)
    set_executor(recording)
    yield recording
    set_executor(None)


@pytest.fixture
def stream() -> DataStream:
    return StreamExecutionEnvironment.get_execution_environment().from_collection([1])


def commit(executor: RecordingExecutor, epoch: int, *records: object) -> None:
    """Play the runtime: write the records in an epoch of the launched job and commit it."""
    plan = executor.launched[-1][0]
    sink = pickle.loads(pickle.dumps(plan.stages[-1].operators[-1].sink))
    writer = sink.create_writer(WriterContext("job", "Collect", 0, 1, str(epoch), epoch))
    writer.write_batch(records, None)
    sink.create_committer().commit(writer.prepare_commit())


def test_records_can_be_read_while_the_job_runs(executor, stream):
    results = stream.execute_and_collect("job")
    assert isinstance(results, CloseableIterator)
    commit(executor, 1, "a", "b")
    assert next(results) == "a"
    assert next(results) == "b"
    commit(executor, 2, "c")
    executor.jobs[0].finish()
    assert list(results) == ["c"]
    assert executor.launched[0][0].name == "job"


def test_next_waits_for_a_commit(executor, stream):
    results = stream.execute_and_collect()
    later = threading.Thread(target=commit, args=(executor, 1, "late"))
    later.start()
    assert results.next() == "late"
    later.join()


def test_an_error_comes_after_the_records_before_it(executor, stream):
    results = stream.execute_and_collect()
    commit(executor, 1, "a")
    executor.jobs[0].result.set_exception(RuntimeError("lost"))
    assert next(results) == "a"
    with pytest.raises(RuntimeError, match="lost"):
        next(results)


def test_closing_cancels_a_job_that_runs(executor, stream):
    with stream.execute_and_collect() as results:
        commit(executor, 1, "a", "b")
        assert next(results) == "a"
    assert executor.jobs[0].cancelled
    assert list(results) == []


def test_closing_leaves_a_finished_job_alone(executor, stream):
    with stream.execute_and_collect() as results:
        executor.jobs[0].finish()
        assert list(results) == []
    assert not executor.jobs[0].cancelled


def test_a_limit_gives_a_list_and_stops_the_job(executor, stream):
    def run(job: RecordedJob, plan: object) -> None:
        commit(executor, 1, 1, 2, 3)

    executor.on_launch = run
    assert stream.execute_and_collect(limit=2) == [1, 2]
    assert executor.jobs[0].cancelled


def test_a_limit_beyond_the_end_gives_what_there_is(executor, stream):
    def run(job: RecordedJob, plan: object) -> None:
        commit(executor, 1, 1)
        job.finish()

    executor.on_launch = run
    assert stream.execute_and_collect(limit=5) == [1]


def test_a_job_that_cannot_be_planned_leaves_no_sink_behind(executor, stream):
    lock = threading.Lock()
    broken = stream.map(lambda value: lock)
    with pytest.raises(Exception, match="variable 'lock'"):
        broken.execute_and_collect()
    assert [op.name for op in stream.get_execution_environment()._operators] == ["Map"]
