"""The driver of a job that a server runs: `python -m headwater.cli.job_driver STORAGE JOB START`.

It takes the order for its start, or ends at once if that was taken back; runs the program; and writes down how that
ended. It needs no server: if that dies, the job goes on, and the next server finds all of it in the storage.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import threading
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from headwater.cli.run import run_program
from headwater.cli.usage import FAILURE
from headwater.common.config.session_defaults import session_defaults, set_session_defaults
from headwater.common.config_options import (
    CHECKPOINT_DIRECTORY,
    FIXED_JOB_ID,
    PYTHON_FILES,
    PYTHON_REQUIREMENTS,
    STATE_DIRECTORY,
    resolve,
)
from headwater.common.configuration import Configuration
from headwater.common.errors import FencedError, HeadwaterError
from headwater.common.job_client import JobClient
from headwater.common.job_status import JobStatus
from headwater.common.machine.processes import name_this_process, start_time
from headwater.compat import pyflink_imports
from headwater.datastream.executor import Executor, set_executor
from headwater.graph.plan import JobPlan
from headwater.runtime.epoch.engine import EngineLostError
from headwater.runtime.job import launcher
from headwater.runtime.job.control_client import ask
from headwater.runtime.job.handle import LocalJobClient
from headwater.runtime.job.run_directory import RunDirectory
from headwater.runtime.python_path import make_importable
from headwater.server.jobs.history import driver_failures
from headwater.server.jobs.job_folder import JobFolder
from headwater.server.jobs.records import DriverEnd, DriverRecord, JobRecord, SubmittedJob
from headwater.server.now import now_ms

BEAT_SECONDS: Final = 5.0
REVOKED: Final = 3
"""Exit code of a driver whose order was taken back, or that was replaced."""
_DETAILED: Final = 10
"""Of so many checkpoints the figures of each partition are kept."""
_LAST_LINES: Final = 20
_LONGEST_PROGRAM: Final = 16 << 20
"""Of a program in a zip, unpacked. A small zip can hold gigabytes of nothing."""


def main(arguments: list[str]) -> int:
    storage, job_id, number = Path(arguments[0]), arguments[1], int(arguments[2])
    folder = JobFolder(storage, job_id)
    here = DriverRecord(os.getpid(), start_time(os.getpid()) or "", socket.gethostname(), now_ms())
    try:
        folder.take(number, here)
    except FileExistsError:
        print(f"headwater: start {number} of job {job_id} was taken back; nothing is done", flush=True)
        return REVOKED
    name_this_process("headwater-job")
    threading.Thread(target=_give_signs, args=(folder, number), name="sign-of-life", daemon=True).start()
    submission = folder.submission()
    assert submission is not None, "a job is ordered after it was submitted"
    jobs = _Jobs(folder, number)
    code = run_submission(folder, submission, jobs)
    jobs.wait()
    folder.ended(number, jobs.end(code))
    return code


def run_submission(folder: JobFolder, submission: SubmittedJob, executor: Executor) -> int:
    """Run the program in this process, its jobs by `executor`, and return its exit code."""
    settings = Configuration.from_dict(submission.settings)
    archive = [submission.program] if submission.program.endswith(".zip") else []
    files = [str(folder.files / name) for name in (*archive, *submission.python_files)]
    if files:
        settings.set(PYTHON_FILES, files)
    if submission.requirements is not None:
        settings.set_string(PYTHON_REQUIREMENTS.key, str(folder.files / submission.requirements))
    make_importable(files)
    set_session_defaults(settings)
    pyflink_imports.install()
    set_executor(executor)
    try:
        path, source = _program(folder, submission)
        code = run_program(path, source, submission.arguments)
    except HeadwaterError as error:
        print(f"headwater: {error}", file=sys.stderr)
        return FAILURE
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else 0 if left.code is None else 1
        if isinstance(left.code, str):
            print(left.code, file=sys.stderr)
    return code


def _program(folder: JobFolder, submission: SubmittedJob) -> tuple[str, bytes]:
    """The file to run, and what is in it. In a zip, it is the entry that the submission names, or `__main__.py`."""
    file = folder.files / submission.program
    if file.suffix != ".zip":
        return str(file), file.read_bytes()
    entry = submission.entry or "__main__.py"
    name = entry if entry.endswith(".py") else entry.replace(".", "/") + ".py"
    try:
        with zipfile.ZipFile(file) as archive:
            size = archive.getinfo(name).file_size
            if size > _LONGEST_PROGRAM:
                raise HeadwaterError(f"{name} in {submission.program} has {size:,} bytes; at most {_LONGEST_PROGRAM:,}")
            return f"{file}/{name}", archive.read(name)
    except (KeyError, zipfile.BadZipFile) as error:
        raise HeadwaterError(f"{submission.program} has no {name} to run: {error}") from None


class _Jobs:
    """The jobs of the program. Each is launched as always, in a checkpoint directory that the next driver finds."""

    def __init__(self, folder: JobFolder, number: int) -> None:
        self._folder = folder
        self._number = number
        self._clients: list[LocalJobClient] = []

    def launch(self, plan: JobPlan, configuration: Configuration, replan: Callable[[int], JobPlan]) -> JobClient:
        chosen = Configuration(configuration)
        chosen.set(STATE_DIRECTORY, resolve(session_defaults()).get(STATE_DIRECTORY))  # where the server looks
        count = len(self._clients) + 1
        if not chosen.is_set(CHECKPOINT_DIRECTORY):
            own = self._folder.checkpoints
            chosen.set(CHECKPOINT_DIRECTORY, str(own) if count == 1 else f"{own}-{count}")
        if count == 1:
            chosen.set(FIXED_JOB_ID, self._folder.job_id)
        client = launcher.launch(plan, chosen, replan)
        assert isinstance(client, LocalJobClient)
        client.exception_history.remember(driver_failures(self._folder.starts()))
        self._clients.append(client)
        self._folder.began(self._number, _record(client, chosen.get(STATE_DIRECTORY)))
        return client

    def wait(self) -> None:
        """Wait for jobs that the program started and left alone: a server runs them to their end."""
        for client in self._clients:
            with contextlib.suppress(BaseException):
                client.get_job_execution_result().result()

    def end(self, code: int) -> DriverEnd:
        """How the driver ends. The last job of the program counts."""
        if not self._clients:
            problem = _last_lines() if code else "the program ended without a call of execute(): there was no job"
            return DriverEnd("FAILED", code, now_ms(), problem)
        client = self._clients[-1]
        status, error = client.get_job_status().result(), _error(client)
        if status is JobStatus.FAILED and isinstance(error, FencedError):
            return DriverEnd("FAILED", code, now_ms(), str(error), told=_told(client))
        if status is JobStatus.FINISHED and code != 0:
            problem = f"its job finished, but then: {_last_lines()}"
            return DriverEnd("FAILED", code, now_ms(), problem, told=_told(client))
        again = isinstance(error, EngineLostError)
        return DriverEnd(status.name, code, now_ms(), "" if error is None else str(error), again, _told(client))


def _record(client: LocalJobClient, state_dir: str) -> JobRecord:
    directory = RunDirectory(state_dir)
    job_id = str(client.get_job_id())
    for card in directory.cards():
        if (card.pid, card.job_id) == (os.getpid(), job_id) and card.is_here:
            with contextlib.suppress(HeadwaterError):  # it has just ended
                return JobRecord(job_id, state_dir, ask(directory, card, "describe"), card.token_digest)
    return JobRecord(job_id, "", client.describe())


def _error(client: LocalJobClient) -> BaseException | None:
    try:
        client.get_job_execution_result().result()
    except BaseException as error:
        return error if client.get_job_status().result() is JobStatus.FAILED else None
    return None


def _told(client: LocalJobClient) -> dict[str, Any]:
    """What the job says at its end, as it would answer the verbs of its control socket."""
    checkpoints = client.checkpoints()
    told = {
        "describe": client.describe(),
        "exceptions": client.exceptions(),
        "checkpoints": checkpoints,
        "checkpoint_details": [client.checkpoint(each["epoch"]) for each in checkpoints[-_DETAILED:]],
        "progress": client.progress(),
        "metrics": client.metrics(),
    }
    answered: dict[str, Any] = json.loads(json.dumps(told, default=str))
    answered["metrics"].get("history", {}).pop("vertices", None)  # long, and the page draws the job's only
    return answered


def _last_lines() -> str:
    """The end of what this process has printed, if that went to a file."""
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        with open("/proc/self/fd/2", "rb") as file:
            file.seek(max(0, os.fstat(2).st_size - 8192))
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        return "see its log"
    return "\n".join(lines[-_LAST_LINES:])


def _give_signs(folder: JobFolder, number: int) -> None:
    """Tell servers on other hosts that this process lives. End it if a server gave it up and started another."""
    while True:
        with contextlib.suppress(OSError):
            folder.beat.touch()
            if folder.is_ordered(number + 1):
                print(f"headwater: job {folder.job_id} was started elsewhere; this driver ends", flush=True)
                os._exit(REVOKED)
        threading.Event().wait(BEAT_SECONDS)


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    sys.exit(code)
