"""One job in the server's storage: its records, read and written by name."""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass
from pathlib import Path

from headwater.checkpoint.storage.durable_file import make_directories
from headwater.common.errors import HeadwaterError
from headwater.server.jobs.records import (
    CANCELLED,
    HISTORY,
    SUBMISSION,
    Cancelled,
    DriverDeath,
    DriverEnd,
    DriverRecord,
    JobHistory,
    JobRecord,
    Order,
    SubmittedJob,
    load,
    save,
)
from headwater.server.now import now_ms

_JOB_ID = re.compile(r"[0-9a-f]{32}")
_ORDER = re.compile(r"(\d{6})\.order")


def is_job_id(text: object) -> bool:
    """Return True if `text` is 32 hexadecimal digits: then it is safe in a path."""
    return isinstance(text, str) and _JOB_ID.fullmatch(text) is not None


@dataclass(frozen=True)
class Start:
    """One start of a job's driver, as far as it got."""

    number: int
    order: Order
    driver: DriverRecord | None
    job: JobRecord | None
    end: DriverEnd | None
    death: DriverDeath | None


class JobFolder:
    """`jobs/<job id>` in the storage of a job server."""

    def __init__(self, storage: Path, job_id: str) -> None:
        if not is_job_id(job_id):
            raise HeadwaterError(f"{job_id!r} is not a job id; expected 32 hexadecimal digits")
        self.job_id = job_id
        self.path = storage / "jobs" / job_id
        self.files = self.path / "files"
        self.log = self.path / "log"
        self.beat = self.path / "beat"
        self.checkpoints = storage / "checkpoints" / job_id
        self._starts = self.path / "starts"

    def create(self) -> None:
        make_directories(str(self.files))
        make_directories(str(self._starts))

    def submission(self) -> SubmittedJob | None:
        return load(self.path, SUBMISSION, SubmittedJob)

    def submit(self, job: SubmittedJob) -> None:
        """From now on the job will be run. Raises FileExistsError if it was submitted before."""
        save(self.path, SUBMISSION, job)

    def cancel(self) -> None:
        """Whatever happens to the driver, it is not started again. Idempotent."""
        with contextlib.suppress(FileExistsError):
            save(self.path, CANCELLED, Cancelled(now_ms()))

    @property
    def is_cancelled(self) -> bool:
        return (self.path / CANCELLED).exists()

    def history(self) -> JobHistory | None:
        return load(self.path, HISTORY, JobHistory)

    @property
    def has_ended(self) -> bool:
        return (self.path / HISTORY).exists()

    def close(self, history: JobHistory) -> None:
        """The job is over for good. Raises FileExistsError if it was already."""
        save(self.path, HISTORY, history)

    # --- its starts

    def starts(self) -> list[Start]:
        """Return all starts, oldest first."""
        try:
            names = [path.name for path in self._starts.iterdir()]
        except FileNotFoundError:
            return []
        numbers = sorted(int(match[1]) for name in names if (match := _ORDER.fullmatch(name)))
        return [self.start(number) for number in numbers]

    def start(self, number: int) -> Start:
        stem = f"{number:06d}"
        order = load(self._starts, f"{stem}.order", Order)
        if order is None:
            raise HeadwaterError(f"{self._starts / stem}.order is missing: nobody ordered start {number} of this job")
        end = load(self._starts, f"{stem}.end", DriverEnd)
        return Start(
            number,
            order,
            load(self._starts, f"{stem}.driver", DriverRecord),
            load(self._starts, f"{stem}.job", JobRecord),
            end,
            None if end is not None else load(self._starts, f"{stem}.death", DriverDeath),
        )

    def order(self, number: int, order: Order) -> None:
        save(self._starts, f"{number:06d}.order", order)

    def is_ordered(self, number: int) -> bool:
        return (self._starts / f"{number:06d}.order").exists()

    def take(self, number: int, driver: DriverRecord) -> None:
        """Take an order, or take it back. Raises FileExistsError if the other side was faster."""
        save(self._starts, f"{number:06d}.driver", driver)

    def began(self, number: int, job: JobRecord) -> None:
        """A driver began its job. Of a program with several jobs, the first one counts."""
        with contextlib.suppress(FileExistsError):
            save(self._starts, f"{number:06d}.job", job)

    def ended(self, number: int, end: DriverEnd) -> None:
        save(self._starts, f"{number:06d}.end", end)

    def died(self, number: int, death: DriverDeath) -> None:
        with contextlib.suppress(FileExistsError):
            save(self._starts, f"{number:06d}.death", death)


def job_ids(storage: Path) -> list[str]:
    """Return the ids of all jobs in the storage, submitted or just about to be."""
    try:
        return sorted(path.name for path in (storage / "jobs").iterdir() if is_job_id(path.name))
    except FileNotFoundError:
        return []


def public_id(folder: JobFolder) -> str:
    """Return the id under which clients know the job: the job's own, which its checkpoint directory may have had."""
    begun = [start.job.job_id for start in folder.starts() if start.job is not None]
    return begun[-1] if begun else folder.job_id
