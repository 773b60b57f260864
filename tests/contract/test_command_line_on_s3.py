"""Every command that takes a savepoint or a checkpoint directory takes a URL of it: in S3, or `file:`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from headwater.checkpoint.paths import CheckpointLayout
from headwater.checkpoint.savepoint.savepoint import open_savepoint, write_savepoint
from headwater.checkpoint.storage.base import StorageSpec
from headwater.checkpoint.store import ManifestStore
from headwater.cli.main import main
from headwater.common.errors import CheckpointError
from headwater.runtime.job.endings import StoppedWithSavepoint
from headwater.runtime.job.handle import LocalJobClient
from tests.contract.s3_server import BUCKET, S3Server, s3_server
from tests.unit.runtime.test_coordinator import Job

Out = pytest.CaptureFixture[str]

PROGRAM = """
from headwater.datastream import StreamExecutionEnvironment
env = StreamExecutionEnvironment.get_execution_environment()
env.from_collection([1]).print()
env.execute("another")
"""


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    with s3_server() as server:
        yield server


@pytest.fixture(params=["s3", "file"])
def base(request: pytest.FixtureRequest, s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Where a job has its checkpoints (`job`) and two savepoints (`savepoints/...`), as a URL."""
    url = f"file://{tmp_path}" if request.param == "file" else s3.spec().url
    options = {key: value for key, value in s3.options.items() if isinstance(value, str)}
    pairs = ",".join(f"{key}:{value}" for key, value in options.items())
    monkeypatch.setenv("HEADWATER_STORAGE_OPTIONS", pairs)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    job = Job(tmp_path / "work", checkpoints=False)
    job.layout = CheckpointLayout(StorageSpec(f"{url}/job", options))
    job.layout.create()
    job.start()
    job.run()
    latest = ManifestStore(job.layout).latest()
    assert latest is not None
    for name in ("one", "two"):
        write_savepoint(job.layout, latest, StorageSpec(f"{url}/savepoints/{name}", options))
    return url


@pytest.mark.parametrize("stop", [False, True])
def test_a_running_job_writes_savepoints_with_the_options_of_its_store(
    s3: S3Server, tmp_path: Path, stop: bool
) -> None:
    options = {key: value for key, value in s3.options.items() if isinstance(value, str)}
    job = Job(tmp_path)
    job.start()
    client = LocalJobClient("0123456789ab", job.coordinator.plan, storage_options=options)
    client.running(job.coordinator)
    url = s3.spec().url
    path = client.ask_to_stop(False, url) if stop else client.trigger_savepoint(url)
    with pytest.raises(StoppedWithSavepoint) if stop else contextlib.nullcontext():
        job.run()
    assert path.result(30).startswith(f"{url}/savepoint-012345-")
    opened = open_savepoint(StorageSpec(path.result(), options))
    assert opened.is_savepoint and "PROBE" not in opened.layout.storage.list("")


@pytest.mark.parametrize("drain", [False, True])
def test_a_bucket_that_is_not_there_does_not_stop_the_job(s3: S3Server, tmp_path: Path, drain: bool) -> None:
    options = {key: value for key, value in s3.options.items() if isinstance(value, str)}
    job = Job(tmp_path)
    job.start()
    client = LocalJobClient("0123456789ab", job.coordinator.plan, storage_options=options)
    client.running(job.coordinator)
    path = client.stop_with_savepoint(drain, "s3://no-such-bucket/savepoints")
    job.run()
    with pytest.raises(CheckpointError, match=r"no-such-bucket.*The job goes on"):
        path.result(30)
    assert job.coordinator.finished


def lines(capsys: Out) -> list[str]:
    return capsys.readouterr().out.splitlines()


def test_list(base: str, capsys: Out) -> None:
    assert main(["savepoint", "list", f"{base}/savepoints"]) == 0
    header, one, two = lines(capsys)
    assert header.startswith("PATH")
    assert "/savepoints/one  test job" in one and "/savepoints/two  test job" in two
    assert main(["savepoint", "list", f"{base}/savepoints/two/"]) == 0
    assert len(lines(capsys)) == 2
    assert main(["savepoint", "list", f"{base}/job"]) == 0
    assert all(".manifest  test job" in line for line in lines(capsys)[1:])
    assert main(["savepoint", "copy", f"{base}/savepoints/one", f"{base}/job/fork"]) == 0
    capsys.readouterr()
    assert main(["savepoint", "list", f"{base}/job"]) == 0
    assert all(".manifest  test job" in line for line in lines(capsys)[1:]), "the copy that it began with is its own"
    assert main(["savepoint", "list", f"{base}/nothing"]) == 1
    assert "nothing" in capsys.readouterr().err


def test_inspect_and_diff(base: str, capsys: Out, tmp_path: Path) -> None:
    assert main(["checkpoints", f"{base}/job"]) == 0
    retained = lines(capsys)[1].rpartition("-s ")[2]
    for place in (f"{base}/savepoints/one", f"{base}/job", retained):
        assert main(["savepoint", "inspect", place]) == 0
        assert "'test job'" in lines(capsys)[0]
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    assert main(["savepoint", "diff", f"{base}/savepoints/one", str(program)]) == 1
    assert " lost" in capsys.readouterr().out


def test_copy(base: str, capsys: Out, tmp_path: Path) -> None:
    assert main(["savepoint", "copy", f"{base}/job", f"{base}/savepoints/three"]) == 0
    (path,) = lines(capsys)
    assert path.endswith("/savepoints/three")
    assert main(["savepoint", "copy", f"{base}/savepoints/three", str(tmp_path / "here")]) == 0
    assert lines(capsys) == [str(tmp_path / "here")]
    assert open_savepoint(tmp_path / "here").is_savepoint
    assert main(["savepoint", "copy", f"{base}/savepoints/two", f"{base}/savepoints/three"]) == 1
    assert "a savepoint is never written over something" in capsys.readouterr().err
    assert main(["savepoint", "copy", f"{base}/savepoints/two"]) == 2


def test_dispose(base: str, capsys: Out) -> None:
    assert main(["savepoint", "dispose", f"{base}/job"]) == 1
    assert "only a savepoint can be disposed of" in capsys.readouterr().err
    assert main(["savepoint", "dispose", f"{base}/savepoints/one"]) == 0
    assert lines(capsys) == [f"Savepoint '{base}/savepoints/one' disposed."]
    assert main(["savepoint", "list", f"{base}/savepoints"]) == 0
    (two,) = lines(capsys)[1:]
    assert "/savepoints/two" in two


def test_retained_checkpoints(base: str, capsys: Out) -> None:
    assert main(["checkpoints", f"{base}/job"]) == 0
    *_, last = lines(capsys)
    assert f"-s {base}/job@" in last
    assert main(["checkpoints", f"{base}/nothing"]) == 1
    assert "is neither a running job nor a directory with checkpoints" in capsys.readouterr().err


def test_a_store_that_refuses_says_how_to_tell_what_it_needs(capsys: Out, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWATER_STORAGE_OPTIONS", "no_such_option:1")
    assert main(["savepoint", "list", f"s3://{BUCKET}/x"]) == 1
    error = capsys.readouterr().err
    assert "headwater.storage.options" in error and "HEADWATER_STORAGE_OPTIONS" in error
