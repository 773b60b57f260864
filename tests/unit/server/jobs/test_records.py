"""What a server writes down: once, whole, checked; and processes that are who they say."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from headwater.common.errors import HeadwaterError
from headwater.common.machine.processes import start_time
from headwater.server.jobs.history import closed, forget_oldest
from headwater.server.jobs.job_folder import JobFolder, job_ids
from headwater.server.jobs.records import DriverRecord, Order, SubmittedJob, load, save

JOB = "0" * 31 + "1"


def submitted(job_id: str = JOB) -> SubmittedJob:
    return SubmittedJob(
        job_id=job_id, program="p.py", arguments=[], python_files=[], requirements=None, settings={}, submitted_ms=1
    )


def test_a_record_is_written_once(tmp_path: Path) -> None:
    save(tmp_path, "r", Order("one", 1))
    with pytest.raises(FileExistsError):
        save(tmp_path, "r", Order("two", 2))
    assert load(tmp_path, "r", Order) == Order("one", 1)
    assert load(tmp_path, "other", Order) is None


@pytest.mark.parametrize("position", [0, 9, 14, -12, -1])
def test_a_single_bit_is_noticed(tmp_path: Path, position: int) -> None:
    save(tmp_path, "r", Order("one", 1))
    content = bytearray((tmp_path / "r").read_bytes())
    content[position] ^= 1
    (tmp_path / "r").write_bytes(content)
    with pytest.raises(HeadwaterError, match=r"/r is damaged: .* Restore it from a copy"):
        load(tmp_path, "r", Order)


def test_a_record_of_another_kind_is_refused(tmp_path: Path) -> None:
    save(tmp_path, "r", Order("one", 1))
    with pytest.raises(HeadwaterError, match="is damaged"):
        load(tmp_path, "r", DriverRecord)


@pytest.mark.parametrize("name", ["", "..", "../" + JOB, "A" * 32, JOB + "0", "x" * 32, JOB + "\n"])
def test_only_job_ids_become_paths(tmp_path: Path, name: str) -> None:
    with pytest.raises(HeadwaterError, match="is not a job id"):
        JobFolder(tmp_path, name)


def test_an_order_is_taken_by_the_driver_or_by_a_leader_but_not_by_both(tmp_path: Path) -> None:
    folder = JobFolder(tmp_path, JOB)
    folder.create()
    folder.order(1, Order("one", 1))
    folder.take(1, DriverRecord(0, "", "here", 1, revoked_by="two"))
    code = subprocess.run(
        [sys.executable, "-m", "headwater.cli.job_driver", str(tmp_path), JOB, "1"], capture_output=True, text=True
    )
    assert code.returncode == 3 and "was taken back; nothing is done" in code.stdout


def test_the_oldest_history_is_forgotten_with_the_checkpoints_of_finished_jobs(tmp_path: Path) -> None:
    for number, status in enumerate(["FINISHED", "FAILED", "FINISHED", "CANCELED"]):
        folder = JobFolder(tmp_path, f"{number:032x}")
        folder.create()
        folder.checkpoints.mkdir(parents=True)
        folder.submit(submitted(folder.job_id))
        folder.close(closed(folder, [], status, ""))
        os.utime(folder.path / "HISTORY", (number, number))
    running = JobFolder(tmp_path, JOB[:-1] + "f")
    running.create()
    running.submit(submitted(running.job_id))
    forget_oldest(tmp_path, 2)
    assert job_ids(tmp_path) == [f"{2:032x}", f"{3:032x}", running.job_id]
    kept = sorted(path.name for path in (tmp_path / "checkpoints").iterdir())
    assert kept == [f"{1:032x}", f"{2:032x}", f"{3:032x}"], "a job that failed may be wanted again"


def test_a_process_is_known_by_its_start(tmp_path: Path) -> None:
    mine = start_time(os.getpid())
    assert mine is not None and mine == start_time(os.getpid())
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert start_time(child.pid) not in (None, mine)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert start_time(child.pid) is None, "a zombie has ended"
    child.wait()
    assert child.stdin is not None
    child.stdin.close()
    assert start_time(child.pid) is None
