"""A disk runs full under a running job: it says which and what to do, and with room again it goes on as if nothing was.

The limit on file sizes (RLIMIT_FSIZE) stands for the full disk: a write ends in the middle of a file. It is set from
outside for the slots and for what starts them, so that slots that are started again have it too.
"""

from __future__ import annotations

import contextlib
import resource
import subprocess
from pathlib import Path

from tests.recovery import wide_state
from tests.recovery.conftest import EPOCH_RECORDS, MakeRun
from tests.recovery.job import expected
from tests.recovery.runs import RUN_SECONDS, Run, assert_same

NO_RESTART = {"restart-strategy.type": "none"}
MANY_RESTARTS = {
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": 10_000,
    "restart-strategy.fixed-delay.delay": 200,
}


def limit_files(run: Run, driver: subprocess.Popen[bytes], size: int | None) -> None:
    """From now on no Python process of the job but the driver can make a file larger than `size` (None: it can)."""
    others = [process for process in run.processes() if process.name() != "java" and process.pid != driver.pid]
    assert set(run.slots()) < {process.pid for process in others}
    for process in others:
        with contextlib.suppress(ProcessLookupError):
            hard = resource.prlimit(process.pid, resource.RLIMIT_FSIZE)[1]
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (hard if size is None else size, hard))


def ends_with(run: Run, driver: subprocess.Popen[bytes]) -> str:
    """The error with which the driver ends: the last line of its traceback."""
    assert driver.wait(RUN_SECONDS) == 1, "the job did not notice"
    return next(line for line in reversed(run.log().splitlines()) if line.startswith("headwater.common.errors."))


def room_comes_and_goes(run: Run, limit: int, text: str) -> None:
    """Go on with the job, take the room away again, and give it back while the job still tries."""
    stopped_at, lines_then = run.epoch(), run.lines()
    run.conf = run.conf | MANY_RESTARTS
    driver = run.start()
    run.wait_for_epoch(stopped_at + 3)
    limit_files(run, driver, limit)
    log = run.logs / "1.err"
    run.wait_until(lambda: driver.poll() is not None or log.read_text().count(text) >= 2, "two attempts without room")
    limit_files(run, driver, None)
    run.wait_for_end()
    assert not lines_then - run.lines(), "what was visible before is gone"


def test_the_working_directory_of_rocksdb(make_run: MakeRun, tmp_path: Path) -> None:
    working = tmp_path / "rocksdb"
    rocksdb = {"state.backend.type": "rocksdb", "state.backend.rocksdb.localdir": str(working)}
    run = make_run(8_000, 200, conf=rocksdb | NO_RESTART, module="tests.recovery.wide_state")
    driver = run.start()
    run.wait_for_epoch(6)
    limit_files(run, driver, 200_000)
    error = ends_with(run, driver)
    assert "(remember): RocksDB's working files cannot be written to" in error
    assert str(working) in error and "File too large" in error and "make room there" in error
    assert 6 <= run.epoch() < 25

    room_comes_and_goes(run, 200_000, "RocksDB's working files cannot be written")
    assert_same(run.lines(), wide_state.expected(run.records))
    assert not [path for path in working.rglob("*") if path.is_file()], "working files were left behind"


def test_the_checkpoint_directory(make_run: MakeRun) -> None:
    run = make_run(8_000, 200, conf=NO_RESTART, module="tests.recovery.wide_state")
    driver = run.start()
    run.wait_for_epoch(6)
    limit_files(run, driver, 20_000)
    error = ends_with(run, driver)
    assert "failed: stage 1 partition" in error and "(KEYED PROCESS): CheckpointError: snapshot" in error
    assert f"{run.checkpoints}/snapshots/" in error and "cannot be written: File too large; make room" in error
    assert 6 <= run.epoch() < 25

    room_comes_and_goes(run, 20_000, "cannot be written: File too large; make room")
    assert_same(run.lines(), wide_state.expected(run.records))


def test_the_target_of_a_file_sink(make_run: MakeRun) -> None:
    run = make_run(30 * EPOCH_RECORDS, conf=NO_RESTART)
    driver = run.start()
    run.wait_for_epoch(6)
    limit_files(run, driver, 30_000)
    error = ends_with(run, driver)
    assert f"output of FileSink cannot be written to {run.output}: File too large; make room there" in error
    assert 6 <= run.epoch() < 25

    room_comes_and_goes(run, 30_000, "output of FileSink cannot be written")
    assert_same(run.lines(), expected(run.records))
    assert not run.pending_files()
