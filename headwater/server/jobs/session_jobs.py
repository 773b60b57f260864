"""The jobs of a session server: takes submissions, and answers for jobs whose driver does not run."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from headwater.common.config_options import (
    IGNORE_UNCLAIMED_STATE,
    JOB_TOKEN,
    PARALLELISM,
    RECOVERY_CLAIM_MODE,
    RECOVERY_PATH,
    STATE_DIRECTORY,
    validate,
)
from headwater.common.configuration import Configuration
from headwater.common.errors import HeadwaterError
from headwater.runtime.epoch.restart_policy import RestartPolicy
from headwater.runtime.job.run_directory import token_digest
from headwater.server.cluster import RunRequest
from headwater.server.http_error import not_reachable
from headwater.server.jobs.history import answer, undescribed
from headwater.server.jobs.job_folder import JobFolder, Start, job_ids, public_id
from headwater.server.jobs.leadership import Leadership, NotLeaderError, check_storage
from headwater.server.jobs.records import JobHistory, SubmittedJob
from headwater.server.jobs.supervisor import Supervisor
from headwater.server.now import now_ms

BEGIN_SECONDS: Final = 60.0
"""How long a submission waits for the program to begin its job."""
PLAN_MODULE: Final = "headwater.cli.upload_plan"  # above this layer: it is started, not imported
PLANS_AT_ONCE: Final = 2
"""Each is a process that imports what its program does."""
_POLL_SECONDS: Final = 0.05
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\-]{0,98}")


class SubmissionFailedError(HeadwaterError):
    """The program ended before it began a job. The text has its last lines."""


class SessionJobs:
    """`History` and `Submissions` of a session server. Servers on one storage stand by for each other."""

    def __init__(
        self, storage: Path, policy: RestartPolicy, history_size: int, defaults: Mapping[str, str] | None = None
    ) -> None:
        """`defaults`: settings of all jobs, unless their submissions say otherwise."""
        check_storage(storage)
        self._storage = storage
        self._defaults = defaults or {}
        self._leadership = Leadership(storage)
        self._supervisor = Supervisor(storage, self._leadership, policy, history_size)
        self._planning = threading.Semaphore(PLANS_AT_ONCE)
        self._histories: dict[str, JobHistory] = {}  # {folder: what is kept}; such a file never changes

    def start(self, address: str) -> None:
        """Lead, or stand by. `address` is where clients find this server."""
        self._leadership.address = address
        self._supervisor.start()

    def stop(self) -> None:
        """Let another server lead. The jobs go on."""
        self._supervisor.stop()

    def leader(self) -> str | None:
        """None: this server leads. Otherwise the leader's address, empty if nobody leads at the moment."""
        try:
            self._leadership.check()
        except NotLeaderError as error:
            return error.leader
        return None

    # --- jobs whose driver does not run: they have ended, or are just being started

    def job_ids(self) -> list[str]:
        """Return the ids of all jobs, those that run included, the last submitted first."""
        found = []
        known = job_ids(self._storage)
        self._histories = {job_id: kept for job_id, kept in self._histories.items() if job_id in known}
        for job_id in known:
            folder = JobFolder(self._storage, job_id)
            with contextlib.suppress(HeadwaterError):  # one damaged record must not hide the other jobs
                kept = self._history(folder)
                if kept is not None:
                    found.append((kept.started_ms, kept.job_id))
                elif (submission := folder.submission()) is not None:
                    found.append((submission.submitted_ms, public_id(folder)))
        return [shown for _, shown in sorted(found, reverse=True)]

    def answer(self, job_id: str, verb: str, **arguments: Any) -> Any | None:
        """Return what a job whose driver does not run says: its last answer to `verb`. None: it was not kept."""
        folder = self._folder(job_id)
        if folder is None:
            return None
        kept = self._history(folder)
        if kept is not None:
            return answer(kept, verb, arguments)
        if verb == "describe":
            return self._describe(folder)
        raise not_reachable(f"the driver of job {job_id} is being started; ask again in a few seconds")

    def token_digest(self, job_id: str) -> str:
        """Return the digest of the token that a job has, or had; empty if it has none."""
        folder = self._folder(job_id)
        if folder is None:
            return ""
        begun = [start.job.token_digest for start in folder.starts() if start.job is not None]
        submission = folder.submission()
        given = submission.settings.get(JOB_TOKEN.key) if submission is not None else None
        return begun[-1] if begun else token_digest(given)

    def cancel(self, job_id: str) -> bool:
        """See that the job ends, whatever becomes of its driver. Return False if it is none of this server's."""
        self._leadership.check()
        folder = self._folder(job_id)
        if folder is None:
            return False
        kept = self._history(folder)
        if kept is not None:
            raise HeadwaterError(f"job {job_id} has ended already ({kept.status})")
        folder.cancel()
        self._supervisor.wake()
        return True

    def _folder(self, job_id: str) -> JobFolder | None:
        """Find a job. Several have the same id if they ran on one checkpoint directory: the last one is meant.

        Of jobs that have ended no file is read again: there may be many, and pages ask every other second.
        """
        for known in job_ids(self._storage):
            if known in self._histories:
                continue
            folder = JobFolder(self._storage, known)
            with contextlib.suppress(HeadwaterError):  # a damaged record is of another job
                kept = self._history(folder)
                if folder.submission() is None:
                    continue
                if job_id == (kept.job_id if kept is not None else public_id(folder)):
                    return folder
        ended = [(kept.started_ms, each) for each, kept in list(self._histories.items()) if kept.job_id == job_id]
        return JobFolder(self._storage, max(ended)[1]) if ended else None

    def _history(self, folder: JobFolder) -> JobHistory | None:
        kept = self._histories.get(folder.job_id) or folder.history()
        if kept is not None:
            self._histories[folder.job_id] = kept
        return kept

    def _describe(self, folder: JobFolder) -> dict[str, Any]:
        """What the job said at its last start."""
        submission, starts = folder.submission(), folder.starts()
        assert submission is not None
        begun = [start.job.description for start in starts if start.job is not None]
        told = begun[-1] if begun else undescribed(folder.job_id, submission)
        problem = self._supervisor.problem(folder.job_id)
        return told | {"status": _status(folder, starts), "end_time": None, "problem": problem}

    # --- submissions

    def submit(self, program: Path, request: RunRequest) -> str:
        """Run a program, and return the job's id as soon as it has begun its job.

        Idempotent in `request.job_id`: if an answer got lost, ask again, also another server. Raises NotLeaderError,
        or SubmissionFailedError with the program's last lines.
        """
        self._leadership.check()
        job_id = request.job_id or uuid.uuid4().hex
        folder = JobFolder(self._storage, job_id)
        job = _fill(folder, program, self._completed(request))
        known = folder.submission()
        if known is None or _content(known) != _content(job):
            raise HeadwaterError(f"job id {job_id} belongs to another submission; choose another one, or none")
        self._leadership.check()
        self._supervisor.wake()
        self._wait_until_begun(folder)
        return public_id(folder)

    def _completed(self, request: RunRequest) -> RunRequest:
        """The request with the server's defaults. The state directory is the server's: it finds drivers there."""
        asked = {key: value for key, value in request.configuration.items() if key != STATE_DIRECTORY.key}
        return dataclasses.replace(request, configuration={**self._defaults, **asked})

    def plan(self, program: Path, request: RunRequest) -> dict[str, Any]:
        """Return the plan of the program's first job in the JSON of Flink's REST. Nothing is kept of it.

        The program runs in a process of its own, up to its first `execute()`.
        """
        with self._planning, tempfile.TemporaryDirectory(prefix="headwater-plan-") as storage:
            folder = JobFolder(Path(storage), uuid.uuid4().hex)
            _fill(folder, program, self._completed(request))
            try:
                run = subprocess.run(
                    [sys.executable, "-m", PLAN_MODULE, storage, folder.job_id],
                    cwd=folder.files,
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    encoding="utf-8",
                    errors="replace",
                    timeout=BEGIN_SECONDS,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                raise SubmissionFailedError(f"the program has not called execute() in {BEGIN_SECONDS:g} s") from None
        if run.returncode:
            raise SubmissionFailedError(f"the program has no plan: {run.stderr.strip()[-2000:]}")
        plan: dict[str, Any] = json.loads(run.stdout)
        return plan

    def _wait_until_begun(self, folder: JobFolder) -> None:
        deadline = time.monotonic() + BEGIN_SECONDS
        while time.monotonic() < deadline:
            if any(start.job is not None for start in folder.starts()):
                return
            kept = self._history(folder)
            if kept is not None:
                raise SubmissionFailedError(kept.problem or f"the program has ended ({kept.status})")
            time.sleep(_POLL_SECONDS)


def _status(folder: JobFolder, starts: Sequence[Start]) -> str:
    """The status of a job that no driver answers for, and that is not closed yet."""
    end = starts[-1].end if starts else None
    if end is not None and not end.again:
        return end.status  # a moment later the history says the same
    if folder.is_cancelled:
        return "CANCELLING"
    return "RESTARTING" if any(start.job is not None for start in starts) else "INITIALIZING"


def _fill(folder: JobFolder, program: Path, request: RunRequest) -> SubmittedJob:
    """Write the submission and its files, unless they are there. Return what was to be written."""
    files = [program, *request.python_files, *([request.requirements] if request.requirements else [])]
    job = _submitted(folder.job_id, program, request, [_given_name(path) for path in files])
    folder.create()
    if folder.submission() is None:
        for path in files:
            shutil.copyfile(path, folder.files / _given_name(path))
        with contextlib.suppress(FileExistsError):
            folder.submit(job)
    return job


def _submitted(job_id: str, program: Path, request: RunRequest, names: list[str]) -> SubmittedJob:
    if len(set(names)) < len(names):
        raise HeadwaterError(f"two files of the submission have the same name: {', '.join(sorted(names))}")
    if not names[0].endswith((".py", ".zip")):
        raise HeadwaterError(f"program {names[0]}: expected a Python file or a zip, ending with .py or .zip")
    settings = Configuration.from_dict({str(key): str(value) for key, value in request.configuration.items()})
    if request.parallelism is not None:
        settings.set_string(PARALLELISM.key, str(request.parallelism))
    if request.savepoint_path is not None:
        settings.set_string(RECOVERY_PATH.key, request.savepoint_path)
    if request.claim_mode is not None:
        settings.set_string(RECOVERY_CLAIM_MODE.key, request.claim_mode)
    if request.allow_non_restored_state:
        settings.set_string(IGNORE_UNCLAIMED_STATE.key, "true")
    validate(settings)
    return SubmittedJob(
        job_id=job_id,
        program=names[0],
        entry=request.entry_class,
        arguments=list(request.program_args),
        python_files=names[1 : 1 + len(request.python_files)],
        requirements=names[-1] if request.requirements else None,
        settings=settings.to_dict(),
        submitted_ms=now_ms(),
    )


def _content(job: SubmittedJob) -> tuple[Any, ...]:
    return job.program, job.entry, job.arguments, job.python_files, job.requirements, job.settings


def _given_name(path: Path) -> str:
    """The name that the client gave an upload, whose own name is `<id>_<name>`."""
    name = path.name.partition("_")[2] or path.name
    if not _NAME.fullmatch(name) or ".." in name:
        raise HeadwaterError(f"file name {name!r}: expected up to 99 letters, digits, '_', '-' or '.'")
    return name
