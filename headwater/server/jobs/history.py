"""Jobs that have ended: what is kept of them, what they still answer, and which are forgotten."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from headwater.common.config.sensitive_keys import shown_settings
from headwater.common.configuration import Configuration
from headwater.runtime.job.exception_history import JobException
from headwater.server.jobs.job_folder import JobFolder, Start, job_ids
from headwater.server.jobs.records import JobHistory, SubmittedJob
from headwater.server.now import now_ms


def closed(folder: JobFolder, starts: Sequence[Start], status: str, problem: str) -> JobHistory:
    """Return what is kept of a job that is over."""
    submission = folder.submission()
    assert submission is not None
    told: dict[str, Any] = {}
    for start in starts:
        described = start.job.description if start.job is not None else {}
        if start.end is not None:
            told |= start.end.told
            described |= start.end.told.get("describe", {})
        if described:
            told["describe"] = described
    last = starts[-1] if starts else None
    ended_ms = last.end.ended_ms if last is not None and last.end is not None else now_ms()
    told.setdefault("describe", undescribed(folder.job_id, submission))
    told["describe"] |= {"status": status, "start_time": submission.submitted_ms, "end_time": ended_ms}
    told["describe"]["timestamps"] = told["describe"]["timestamps"] | {status: ended_ms}
    told.setdefault("checkpoints", [])
    told["exceptions"] = _exceptions(told.get("exceptions"), starts, problem, ended_ms)
    return JobHistory(
        job_id=told["describe"]["job_id"],
        name=told["describe"]["name"],
        status=status,
        started_ms=submission.submitted_ms,
        ended_ms=ended_ms,
        problem=problem,
        told=told,
    )


def driver_failures(starts: Sequence[Start]) -> list[JobException]:
    """Return the ends of drivers after which another one was, or had to be, started; oldest first."""
    found = []
    for start in starts:
        host = start.driver.host if start.driver is not None else None
        if start.death is not None:
            found.append(_failure("DriverDied", start.death.problem, start.death.noticed_ms, host))
        elif start.end is not None and start.end.again:
            found.append(_failure("EngineLostError", start.end.problem, start.end.ended_ms, host))
    return found


def _exceptions(told: dict[str, Any] | None, starts: Sequence[Start], problem: str, ended_ms: int) -> dict[str, Any]:
    """What the last job said of its exceptions; it has those of the drivers before it. Of others, what is known."""
    known: list[dict[str, Any]] = list(told["entries"]) if told is not None else []
    seen = {entry["timestamp_ms"] for entry in known}
    more = [asdict(each) for each in driver_failures(starts) if each.timestamp_ms not in seen]
    if problem and not known and not more:
        more = [asdict(_failure("ProgramFailed", problem, ended_ms, None))]
    for entry in more:
        entry |= {"vertex": None, "task_name": None}
    entries = sorted([*known, *more], key=lambda entry: -int(entry["timestamp_ms"]))
    return {"entries": entries, "truncated": told is not None and told["truncated"]}


def _failure(name: str, text: str, timestamp_ms: int, host: str | None) -> JobException:
    return JobException(timestamp_ms, name, text, text, host=host)


def answer(history: JobHistory, verb: str, arguments: Mapping[str, Any]) -> Any | None:
    """Return what a past job answers; None if that was not kept."""
    if verb == "status":
        progress = history.told.get("progress", {})
        return {"job_id": history.job_id, "name": history.name, "status": history.status, "progress": progress}
    if verb == "checkpoint":
        kept = {each["epoch"]: each for each in history.told.get("checkpoint_details", ())}
        return kept.get(arguments.get("id"))
    return history.told.get(verb)


def forget_oldest(storage: Path, size: int) -> None:
    """Forget all but the last `size` jobs that have ended. The checkpoints of those that finished go with them."""
    ended = []
    for job_id in job_ids(storage):
        folder = JobFolder(storage, job_id)
        if folder.has_ended:
            ended.append(folder)
    if len(ended) <= size:
        return
    by_age = sorted(ended, key=lambda folder: (folder.path / "HISTORY").stat().st_mtime_ns)
    for folder in by_age[: len(ended) - size]:
        history = folder.history()
        # Out of the way first: a folder that is half deleted must not look like a job.
        grave = folder.path.with_name(f"deleted-{uuid.uuid4().hex}")
        os.replace(folder.path, grave)
        shutil.rmtree(grave, ignore_errors=True)
        if history is not None and history.status == "FINISHED":
            shutil.rmtree(folder.checkpoints, ignore_errors=True)


def undescribed(job_id: str, submission: SubmittedJob) -> dict[str, Any]:
    """Describe a job that has not begun: its program has not called execute() yet, or never will."""
    name = submission.program
    return {
        "job_id": job_id,
        "name": name,
        "status": "INITIALIZING",
        "start_time": submission.submitted_ms,
        "end_time": None,
        "timestamps": {},
        "parallelism": 0,
        "max_parallelism": -1,
        "plan": {"jid": job_id, "name": name, "type": "STREAMING", "nodes": []},
        "vertices": [],
        "config": shown_settings(Configuration.from_dict(submission.settings)),
        "checkpoint_dir": "",
        "host": "",
        "pid": 0,
        "log_file": None,
    }
