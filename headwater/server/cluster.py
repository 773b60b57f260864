"""The jobs that a server knows: those that run, by their cards and control sockets, and those that its history keeps.

Nothing here waits for a job longer than a time limit, and no job's silence keeps another one waiting: a request to a
driver is a connection of the event loop, not a thread.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from headwater.common.errors import HeadwaterError
from headwater.common.query_error import QueryError
from headwater.runtime.job.run_directory import JobCard, RunDirectory
from headwater.server.http_error import HttpError, job_not_found, not_reachable

ASK_SECONDS = 5.0
"""How long a driver may take to tell something about itself."""
LONGEST_ANSWER = 64 << 20
UNKNOWN_STATUS = "RECONCILING"
"""Flink's word for a job whose state is not known (yet): its driver does not answer."""


class RefusedByJob(HeadwaterError):
    """The job answered with an error: it does not know, or cannot do, what was asked."""


class History(Protocol):
    """Jobs that have ended. Called in threads."""

    def job_ids(self) -> Sequence[str]: ...
    def answer(self, job_id: str, verb: str, **arguments: Any) -> Any | None:
        """Return the job's last answer to a verb of the control socket; None if it was not kept."""

    def cancel(self, job_id: str) -> bool:
        """See that a job ends, whatever becomes of its driver. Return False if it is none of this server's."""

    def token_digest(self, job_id: str) -> str:
        """Return the digest of the token that a job has, or had; empty if it has none."""


@dataclass(frozen=True)
class RunRequest:
    """How to run a program: what Flink's `/jars/:jarid/run` takes."""

    entry_class: str | None = None
    """For a zip: the module, or the file in it, to run."""
    program_args: tuple[str, ...] = ()
    parallelism: int | None = None
    savepoint_path: str | None = None
    claim_mode: str | None = None
    allow_non_restored_state: bool = False
    job_id: str | None = None
    configuration: Mapping[str, str] = field(default_factory=dict)
    python_files: tuple[Path, ...] = ()
    """Uploads that the program imports."""
    requirements: Path | None = None
    """A requirements file: what it lists must be installed."""


class Submissions(Protocol):
    """Runs programs. Called in threads."""

    def submit(self, program: Path, request: RunRequest) -> str:
        """Start the program's job and return its id. Raises HeadwaterError with the reason if it does not start."""
        ...

    def plan(self, program: Path, request: RunRequest) -> Mapping[str, Any]:
        """Return the plan of the program's first job, which is not started. Raises HeadwaterError with the reason."""
        ...


class Job(Protocol):
    """One job, running or ended."""

    job_id: str

    async def ask(self, verb: str, /, seconds: float | None = ASK_SECONDS, **arguments: Any) -> Any:
        """Return the answer to a verb of the control socket. Raises RefusedByJob, or HttpError if nobody answers."""

    @property
    def ended(self) -> bool: ...


class RunningJob:
    """A job whose driver has a card in the run directory."""

    ended = False

    def __init__(self, directory: RunDirectory, card: JobCard) -> None:
        self.directory = directory
        self.card = card
        self.job_id = card.job_id

    async def ask(self, verb: str, /, seconds: float | None = ASK_SECONDS, **arguments: Any) -> Any:
        card = self.card
        if not card.is_here:
            raise not_reachable(f"job {card.job_id} runs on host {card.host}; ask the server there")
        try:
            async with asyncio.timeout(seconds):
                answer = await self._converse({"verb": verb, **arguments})
        except TimeoutError:
            raise not_reachable(f"the driver of job {card.job_id} (pid {card.pid}) does not answer") from None
        except (OSError, ValueError, asyncio.IncompleteReadError):
            raise not_reachable(f"the driver of job {card.job_id} (pid {card.pid}) has just ended, or hangs") from None
        if "query" in answer:
            raise QueryError.from_json(answer["query"])
        if "error" in answer:
            raise RefusedByJob(str(answer["error"]))
        return answer["ok"]

    async def _converse(self, request: Mapping[str, Any]) -> dict[str, Any]:
        connection = self.directory.connect(self.card, blocking=False)
        reader, writer = await asyncio.open_unix_connection(sock=connection, limit=LONGEST_ANSWER)
        try:
            writer.write(json.dumps(request).encode() + b"\n")
            await writer.drain()
            answer = json.loads(await reader.readuntil(b"\n"))
        finally:
            writer.close()
        return answer if isinstance(answer, dict) else {"error": "the driver's answer makes no sense"}


class EndedJob:
    """A job that the history keeps."""

    ended = True

    def __init__(self, history: History, job_id: str) -> None:
        self._history = history
        self.job_id = job_id

    async def ask(self, verb: str, /, seconds: float | None = ASK_SECONDS, **arguments: Any) -> Any:
        answer = await asyncio.to_thread(self._history.answer, self.job_id, verb, **arguments)
        if answer is None:
            raise RefusedByJob(f"job {self.job_id} has ended, and its answer to '{verb}' was not kept")
        return answer


class Cluster:
    """All jobs of a run directory, or one of them; and the history."""

    def __init__(self, directory: RunDirectory, *, only: str | None = None, history: History | None = None) -> None:
        self._directory = directory
        self._only = only
        self._history = history
        self._digests: dict[str, str] = {}  # {job: digest of its token}, also of jobs that have ended since

    async def jobs(self) -> list[Job]:
        """Return the running jobs, the longest running first, then the ended ones."""
        running = await self.running()
        ended = await asyncio.to_thread(self._history.job_ids) if self._history is not None else ()
        found: dict[str, Job] = {job.job_id: job for job in running}
        for job_id in ended:
            if job_id not in found and self._history is not None:
                found[job_id] = EndedJob(self._history, job_id)
        return list(found.values())

    async def job(self, job_id: str) -> Job:
        """Return one job. Raises HttpError 404."""
        job = await self.find(job_id)
        if job is None:
            raise job_not_found(job_id)
        return job

    async def find(self, job_id: str) -> Job | None:
        return next((job for job in await self.jobs() if job.job_id == job_id), None)

    def cancel(self, job_id: str) -> bool:
        """See that a job of this server ends, whatever becomes of its driver. False: it is not the server's own."""
        return self._history is not None and self._history.cancel(job_id)

    async def token_digest(self, job_id: str) -> str:
        """Return the digest of the token that a job has, or had while it ran; empty if it has none."""
        job = await self.find(job_id)
        if isinstance(job, RunningJob):
            return job.card.token_digest
        if job is not None and self._history is not None:
            kept = await asyncio.to_thread(self._history.token_digest, job_id)
            return kept or self._digests.get(job_id, "")
        return self._digests.get(job_id, "")

    async def descriptions(self) -> list[dict[str, Any]]:
        """Ask all jobs at once to describe themselves. One that does not answer is described by its card."""
        return list(await asyncio.gather(*(described(job) for job in await self.jobs())))

    async def running(self) -> list[RunningJob]:
        """Return the running jobs, the longest running first."""
        cards = await asyncio.to_thread(self._directory.cards)
        chosen = [card for card in cards if self._only in (None, card.job_id)]
        self._digests.update({card.job_id: card.token_digest for card in chosen if card.token_digest})
        return [RunningJob(self._directory, card) for card in chosen]


async def described(job: Job) -> dict[str, Any]:
    """The answer to `describe`; if there is none, what the card says, with the status of a job that is not known."""
    try:
        answer: dict[str, Any] = await job.ask("describe")
    except (HttpError, RefusedByJob):
        card = job.card if isinstance(job, RunningJob) else None
        return {
            "job_id": job.job_id,
            "name": card.name if card is not None else "",
            "status": UNKNOWN_STATUS,
            "start_time": card.started_ms if card is not None else -1,
            "end_time": None,
            "timestamps": {},
            "parallelism": 0,
            "max_parallelism": -1,
            "plan": {"jid": job.job_id, "name": card.name if card else "", "type": "STREAMING", "nodes": []},
            "vertices": [],
            "config": {},
            "host": card.host if card is not None else "",
            "pid": card.pid if card is not None else 0,
            "log_file": None,
        }
    return answer
