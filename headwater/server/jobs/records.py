"""What a job server writes down: small sealed files, each written once and never changed.

::

    <storage>/claims/<n>.claim                who leads since when (leadership.py)
    <storage>/claims/<n>.sign                 its last sign of life, and its address
    <storage>/programs/                       what was uploaded (server/programs.py)
    <storage>/jobs/<job id>/SUBMISSION        what to run
    <storage>/jobs/<job id>/files/            the program and its files
    <storage>/jobs/<job id>/log               what its drivers print
    <storage>/jobs/<job id>/CANCELLED         somebody wants it to end
    <storage>/jobs/<job id>/HISTORY           it has ended: how, and all that it told about itself
    <storage>/jobs/<job id>/starts/<n>.order  a leader wants a driver to start, for the n-th time
    <storage>/jobs/<job id>/starts/<n>.driver the process that took the order; or the leader that took it back
    <storage>/jobs/<job id>/starts/<n>.job    the job that the driver began
    <storage>/jobs/<job id>/starts/<n>.end    how the driver ended, as it says itself
    <storage>/jobs/<job id>/starts/<n>.death  the driver died without a word, and a leader noticed
    <storage>/checkpoints/<job id>/           its checkpoints, unless the program names another directory

Every record has exactly one writer: of several who try, the first wins. So whatever a server that no longer
leads still does, an order has one driver, and a job has one order at a time. docs/decisions/0021-job-servers.md
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from headwater.checkpoint.storage.local import LocalStorage
from headwater.checkpoint.storage.sealed import BrokenSealError, seal, unseal
from headwater.common.errors import HeadwaterError

_MAGIC: Final = b"HWSERVER"
_FORMAT_VERSION: Final = 1

SUBMISSION: Final = "SUBMISSION"
CANCELLED: Final = "CANCELLED"
HISTORY: Final = "HISTORY"


class SubmittedJob(msgspec.Struct, frozen=True, kw_only=True):
    """What to run. File names are relative to the job's folder `files`."""

    job_id: str
    program: str
    entry: str | None = None
    """For a zip: the file or module in it to run."""
    arguments: list[str]
    python_files: list[str]
    requirements: str | None
    settings: dict[str, str]
    submitted_ms: int


class Order(msgspec.Struct, frozen=True):
    """A leader's order to start a driver."""

    leader: str
    ordered_ms: int


class DriverRecord(msgspec.Struct, frozen=True):
    """The process that took an order. `revoked_by` is set if a leader took the order back before that."""

    pid: int
    start_time: str
    """Of the process: pids are reused (common/machine/processes.py)."""
    host: str
    began_ms: int
    revoked_by: str = ""


class JobRecord(msgspec.Struct, frozen=True):
    """The job that a driver began: where it answers, and how it described itself."""

    job_id: str
    state_dir: str
    description: dict[str, Any]
    token_digest: str = ""
    """Of the job's own token (headwater.job.token), which opens the job's routes also after its end."""


class DriverEnd(msgspec.Struct, frozen=True):
    """How a driver ended, by its own account."""

    status: str
    """FINISHED, CANCELED or FAILED."""
    exit_code: int
    ended_ms: int
    problem: str = ""
    again: bool = False
    """Another start may help: Spark itself is gone."""
    told: dict[str, Any] = {}
    """{verb: what the job answered to it at its end}"""


class DriverDeath(msgspec.Struct, frozen=True):
    """A driver is gone without an account of its end."""

    noticed_ms: int
    problem: str


class Cancelled(msgspec.Struct, frozen=True):
    """Somebody asked for the end of the job."""

    asked_ms: int


class JobHistory(msgspec.Struct, frozen=True):
    """A job that will not be started again."""

    job_id: str
    name: str
    status: str
    started_ms: int
    ended_ms: int
    problem: str
    told: dict[str, Any]
    """{verb: what the job answered to it last}"""


Record = TypeVar("Record", bound=msgspec.Struct)


def save(directory: Path, name: str, record: msgspec.Struct) -> None:
    """Write a record. Raises FileExistsError if somebody was faster, HeadwaterError if it cannot be written."""
    try:
        content = seal(_MAGIC, _FORMAT_VERSION, msgspec.msgpack.encode(record))
        LocalStorage(directory).write_once(name, content)
    except FileExistsError:
        raise
    except OSError as error:
        raise HeadwaterError(f"{directory / name} cannot be written: {error.strerror or error}") from error


def load(directory: Path, name: str, kind: type[Record]) -> Record | None:
    """Return a record, or None if it was not written yet. Raises HeadwaterError if the file is damaged."""
    path = directory / name
    try:
        content = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise HeadwaterError(f"{path} cannot be read: {error.strerror or error}") from error
    try:
        return msgspec.msgpack.decode(unseal(_MAGIC, (_FORMAT_VERSION,), content, "record of a job server"), type=kind)
    except (BrokenSealError, msgspec.MsgspecError) as error:
        raise HeadwaterError(
            f"{path} is damaged: {error}. Restore it from a copy, or move {directory} away: the server then forgets "
            "the job, and its checkpoints stay"
        ) from error
