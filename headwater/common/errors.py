"""Every error that headwater raises on purpose. A class exists only where somebody catches it.

The text of an error says what was found, what was expected and what to do. Errors cross process borders (slot to
relay, task to driver), so each one survives a pickle round trip with all its attributes.
"""

from __future__ import annotations

import os
import traceback
from typing import Any

MAX_RECORD_CHARS = 500
"""How much of a record's repr an error shows."""

_PACKAGE_DIRECTORY = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


class HeadwaterError(Exception):
    """Base of all errors that headwater raises on purpose. Catching it hides no bug elsewhere."""

    refusal: Any = None
    """For the runtime: which record an operator failed at (`runtime/epoch/refusals.py`), if it may go without it."""
    batch_index: int | None = None
    """For the runtime: at which record of its batch an operator failed, if it knows."""
    from_downstream: bool = False
    """For the runtime: it was raised by an operator or edge behind the one that it passes through now."""


class ConfigurationError(HeadwaterError):
    """A setting, or the machine, is not what the job needs. Raised before Spark starts; nothing has happened yet."""


class PlanError(HeadwaterError):
    """The program does not describe a job that can run: no sink, two operators with one uid, a bad graph."""


class PatternError(PlanError):
    """A pattern of events cannot mean anything: two steps of one name, a loop of no events, an unknown field."""


class SqlError(PlanError):
    """SQL text, or a call of the Table API, that means nothing. The text has line and column where there is SQL text.

    Raised before anything runs.
    """


class StateError(HeadwaterError):
    """State is used in a way that its descriptor, or the current key, does not allow."""


class StateMigrationError(StateError):
    """Stored state does not fit the program. Raised when it is restored, before a record is processed.

    Trying again does not help: change the program, as the text says.
    """


class CheckpointError(HeadwaterError):
    """A persisted file is missing, damaged or of another attempt. The text names the file and the epoch.

    headwater never falls back to an older epoch in silence: a person decides.
    """


class DamagedSnapshotError(CheckpointError):
    """A snapshot's file is missing, or is not what was written. Other files may have the same state (repair.py)."""

    def __init__(self, text: str, name: str = "") -> None:
        super().__init__(text, name)
        self.text = text
        self.name = name
        """The file's name in the manifest."""

    def __str__(self) -> str:
        return self.text


class StorageError(CheckpointError):
    """The checkpoint storage failed after all retries. What it holds is unchanged.

    A later checkpoint may succeed.
    """


class LocalDiskError(HeadwaterError):
    """A local disk did not take what an attempt wrote. The text names the place. The epoch is rolled back.

    Another attempt may succeed, as the restart policy allows.
    """


class ExternalSystemError(HeadwaterError):
    """A system outside the job does not answer, or refuses for now. The text names it. The epoch is rolled back.

    For connectors. Another attempt may succeed, as the restart policy allows.
    """


class FencedError(CheckpointError):
    """Another driver has taken over the job. This one must stop, and may neither commit nor delete anything."""


class TypeMismatchError(HeadwaterError, TypeError):
    """A value does not fit the type that was declared for it. The text has field, expected and found."""


class TimestampError(HeadwaterError, ValueError):
    """A record's event timestamp cannot be used: None, not a number, negative or absurdly far ahead."""


class RejectedRecordError(HeadwaterError):
    """A source could not read a record, and nobody takes rejected ones. The text says where it is.

    Trying again does not help.
    """


class InvalidKeyError(HeadwaterError, TypeError):
    """A key cannot be a key: unhashable, or a NaN, which is not equal to itself."""


class SerializationError(HeadwaterError):
    """A function, record or state value cannot be pickled, or bytes cannot be read. The text names the owner."""


class JobInUseError(HeadwaterError):
    """The checkpoint directory belongs to a job that is running. The text has its pid and host."""


class JobFailedError(HeadwaterError):
    """The job ended in failure after its restart policy gave up. `__cause__` is the last failure where it is known."""


class UserCodeError(HeadwaterError):
    """A user's function raised.

    Holds only text, never the exception itself: the user's exception class may not be importable, or picklable, in the
    process that shows the error. The failing record's epoch is rolled back, so the checkpoint stays usable.
    """

    def __init__(self, operator_name: str, record_repr: str, epoch: int, user_traceback: str, cause_repr: str) -> None:
        super().__init__(operator_name, record_repr, epoch, user_traceback, cause_repr)
        self.operator_name = operator_name
        self.record_repr = record_repr
        self.epoch = epoch
        self.user_traceback = user_traceback
        self.cause_repr = cause_repr

    @classmethod
    def from_exception(cls, error: BaseException, operator_name: str, record: Any, epoch: int) -> UserCodeError:
        """Describe `error`, which user code raised while it processed `record`. The traceback is read from `error`."""
        return cls(operator_name, short_repr(record), epoch, user_traceback(error), _cause(error))

    def __str__(self) -> str:
        return (
            f"operator '{self.operator_name}' failed in epoch {self.epoch}: {self.cause_repr}\n"
            f"  record: {self.record_repr}\n"
            f"{self.user_traceback.rstrip()}"
        )


class UserFunctionError(UserCodeError):
    """A function of a user in SQL raised. `operator_name` is the function, with its place in the SQL text."""

    def __str__(self) -> str:
        return (
            f"function {self.operator_name} failed: {self.cause_repr}\n"
            f"  arguments: {self.record_repr}\n"
            f"{self.user_traceback.rstrip()}"
        )


def short_repr(value: Any, limit: int = MAX_RECORD_CHARS) -> str:
    """`repr(value)` cut at `limit` characters; never raises, because it is called while another error is reported."""
    try:
        text = repr(value)
    except Exception as error:
        text = f"<{type(value).__name__} whose repr raised {type(error).__name__}>"
    return text if len(text) <= limit else text[:limit] + f"... ({len(text)} characters)"


def _cause(error: BaseException) -> str:
    """As `short_repr`, but an OSError names its file, too."""
    if isinstance(error, OSError) and error.filename is not None:
        return f"{type(error).__name__}({short_repr(str(error))})"
    return short_repr(error)


def user_traceback(error: BaseException) -> str:
    """Return the traceback of `error` and of its causes without the frames of headwater itself.

    Keeps headwater's frames if there are no others: then the call was wrong, not the user's code.
    """
    described = traceback.TracebackException.from_exception(error, lookup_lines=True)
    seen: set[int] = set()
    pending = [described]
    while pending:
        part = pending.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        users = [frame for frame in part.stack if not _is_own_frame(frame.filename)]
        if users:
            part.stack = traceback.StackSummary.from_list(users)
        pending += [other for other in (part.__cause__, part.__context__) if other is not None]
        pending += part.exceptions or []
    return "".join(described.format())


def _is_own_frame(filename: str) -> bool:
    return filename.startswith(_PACKAGE_DIRECTORY)


class FunctionTypeError(PlanError):
    """A function of SQL does not take these arguments. The text says what was found and what it takes."""


class ComputationError(HeadwaterError, ValueError):
    """A value of SQL cannot be computed: a division by zero, text that is no number. The text has the value."""
