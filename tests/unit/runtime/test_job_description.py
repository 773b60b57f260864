"""What a job tells about itself: states and their times, exceptions with their task, one checkpoint."""

from __future__ import annotations

import pickle
import socket
import time
from pathlib import Path
from typing import Any

import pytest

from headwater.common import Configuration
from headwater.common.errors import HeadwaterError, JobFailedError, UserCodeError
from headwater.common.ids import Place
from headwater.common.job_status import JobStatus
from headwater.common.watermark_strategy import WatermarkStrategy
from headwater.datastream import StreamExecutionEnvironment
from headwater.datastream.connectors.data_generator import DataGeneratorSource
from headwater.runtime.epoch.failure import AttemptFailedError, FailedAt, FailureReason
from headwater.runtime.job import launcher
from headwater.runtime.job.exception_history import SIZE, ExceptionHistory
from headwater.runtime.job.handle import LocalJobClient
from headwater.testing import CollectingSink


def ended_job(tmp_path: Path, divide_by: int = 1, **conf: str) -> LocalJobClient:
    """Run a job to its end, which may be an error: numbers, keyed, divided in a slot of partition 1."""
    settings = {"headwater.master": "in-process", "execution.checkpointing.dir": str(tmp_path / "job"), **conf}
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
    env.set_parallelism(2)
    keyed = env.from_collection([1, 2, 3]).key_by(lambda number: number)
    keyed.reduce(lambda a, b: a + b).uid("sum").name("Sum").map(lambda n: n // divide_by).name("Divide").sink_to(
        CollectingSink(str(tmp_path / "out"))
    )
    plan, configuration = env._plan("numbers")
    client = launcher.launch(plan, configuration)
    assert isinstance(client, LocalJobClient)
    with pytest.raises(HeadwaterError) if divide_by == 0 else _nothing():
        client.get_job_execution_result().result(60)
    return client


class _nothing:
    def __enter__(self) -> None: ...
    def __exit__(self, *_: Any) -> None: ...


def test_a_job_tells_its_graph_and_when_it_was_in_which_state(tmp_path: Path) -> None:
    before = int(time.time() * 1000)
    told = ended_job(tmp_path).describe()
    after = int(time.time() * 1000)
    assert (told["status"], told["name"], told["parallelism"]) == ("FINISHED", "numbers", 2)
    assert len(told["job_id"]) == 32 and told["plan"]["jid"] == told["job_id"]
    times = told["timestamps"]
    assert before <= times["CREATED"] <= times["RUNNING"] <= times["FINISHED"] <= after
    assert (told["start_time"], told["end_time"]) == (times["CREATED"], times["FINISHED"])
    assert times["FAILED"] == times["RESTARTING"] == 0
    assert [vertex["id"] for vertex in told["vertices"]] == [node["id"] for node in told["plan"]["nodes"]]


def test_secrets_are_not_told(tmp_path: Path) -> None:
    conf = {"headwater.storage.options": "key:mine,secret:hush", "spark.hadoop.fs.s3a.secret.key": "hush"}
    config = ended_job(tmp_path, **conf).describe()["config"]
    assert config["headwater.storage.options"] == config["spark.hadoop.fs.s3a.secret.key"] == "******"
    assert config["headwater.master"] == "in-process"


def test_the_users_exception_has_its_operator_partition_and_host(tmp_path: Path) -> None:
    client = ended_job(tmp_path, divide_by=0)
    (entry,) = client.exceptions()["entries"]
    assert (entry["exception_name"], entry["operator"]) == ("ZeroDivisionError", "Divide")
    assert "n // divide_by" in entry["stacktrace"] and "headwater/runtime" not in entry["stacktrace"]
    assert (entry["stage"], entry["host"]) == (1, socket.gethostname())
    vertices = {vertex["id"]: vertex for vertex in client.describe()["vertices"]}
    assert vertices[entry["vertex"]]["name"].startswith("Sum -> Divide")
    assert entry["task_name"] == f"{vertices[entry['vertex']]['name']} ({entry['partition'] + 1}/2)"
    assert client.describe()["end_time"] >= entry["timestamp_ms"] > 0


def test_one_checkpoint_by_vertex_and_subtask(tmp_path: Path) -> None:
    client = ended_job(tmp_path)
    largest = max(client.checkpoints(), key=lambda each: int(each["delta_bytes"]))
    told = client.checkpoint(largest["epoch"])
    (vertex,) = told["vertices"]
    assert vertex["name"].startswith("Sum -> Divide")
    assert [subtask["index"] for subtask in vertex["subtasks"]] == [0, 1]
    assert sum(subtask["delta_bytes"] for subtask in vertex["subtasks"]) == told["delta_bytes"] > 0
    for unknown in (1_000, None, "latest"):
        with pytest.raises(HeadwaterError, match="no statistics of a checkpoint of epoch"):
            client.checkpoint(unknown)


def test_a_checkpoint_can_be_asked_for_between_two_that_are_due(tmp_path: Path) -> None:
    conf = {"headwater.master": "in-process", "execution.checkpointing.interval": "1 h"}
    env = StreamExecutionEnvironment.get_execution_environment(
        Configuration.from_dict(conf | {"execution.checkpointing.dir": str(tmp_path / "job")})
    )
    numbers = DataGeneratorSource(lambda i: i, count=1_000_000, rate_per_second=100)
    env.from_source(numbers, WatermarkStrategy.no_watermarks(), "numbers").key_by(lambda n: n % 2).reduce(
        lambda a, b: a + b
    ).sink_to(CollectingSink(str(tmp_path / "out")))
    client = launcher.launch(*env._plan("endless"))
    assert isinstance(client, LocalJobClient)
    deadline = time.monotonic() + 30
    while client.progress()["epoch"] < 1 and time.monotonic() < deadline:
        time.sleep(0.02)
    before = len(client.checkpoints())
    epoch = client.trigger_checkpoint().result(30)
    assert (client.checkpoints()[-1]["epoch"], len(client.checkpoints())) == (epoch, before + 1)
    client.cancel().result(30)
    with pytest.raises(HeadwaterError, match="a checkpoint needs a running job"):
        client.trigger_checkpoint()


# --- the history


def test_newest_first_and_the_oldest_are_dropped() -> None:
    history = ExceptionHistory(now_ms=iter(range(100)).__next__)
    for number in range(SIZE + 2):
        history.add(AttemptFailedError(f"slot {number}", FailureReason.PROCESS_LOST), epoch=number)
    told = history.as_dict()
    assert [entry["epoch"] for entry in told["entries"]] == list(range(SIZE + 1, 1, -1))
    assert told["truncated"] and told["entries"][0]["exception_name"] == "PROCESS_LOST"


def test_the_failure_that_ends_the_job_counts_once() -> None:
    history = ExceptionHistory()
    error = UserCodeError("Divide", "3", 4, "Traceback: mine", "ZeroDivisionError('no')")
    history.add(AttemptFailedError(str(error), FailureReason.PROGRAM, error, FailedAt(Place(1, 0), "a")), 4)
    history.add(error)
    history.add(JobFailedError("epoch 4 failed too often"))
    names = [entry["exception_name"] for entry in history.as_dict()["entries"]]
    assert names == ["JobFailedError", "ZeroDivisionError"]


def test_a_bug_of_ours_keeps_its_traceback() -> None:
    history = ExceptionHistory()
    try:
        {}["x"]
    except KeyError as error:
        history.add(error)
    (entry,) = history.as_dict()["entries"]
    assert entry["exception_name"] == "KeyError" and "test_job_description.py" in entry["stacktrace"]


def test_where_a_failure_was_survives_the_way_to_the_driver() -> None:
    failure = AttemptFailedError("gone", FailureReason.PROCESS_LOST, at=FailedAt(Place(2, 1), "a"))
    assert pickle.loads(pickle.dumps(failure)).at == FailedAt(Place(2, 1), "a")


def test_a_state_that_comes_again_has_its_last_time(monkeypatch: pytest.MonkeyPatch) -> None:
    from headwater.runtime.epoch import job_states

    times = iter(range(10, 20))
    monkeypatch.setattr(job_states, "_now_ms", lambda: next(times))
    state = job_states.JobState()
    for status in (JobStatus.RUNNING, JobStatus.RESTARTING, JobStatus.RUNNING, JobStatus.RUNNING):
        state.to(status)
    assert state.since_ms == {JobStatus.CREATED: 10, JobStatus.RUNNING: 13, JobStatus.RESTARTING: 12}
