"""A record that a source could not make sense of, with what is needed to look at it and to read it again."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from headwater.common.errors import HeadwaterError, SerializationError, TypeMismatchError, UserCodeError

_OF_RECORDS: Final = (SerializationError, TypeMismatchError, UserCodeError)


def why_rejected(error: Exception) -> str:
    """Return what is wrong with a record, from what its format raised.

    Raises `error` if it is one of ours that says nothing about the record: a registry that is away, or refuses us.
    """
    if not isinstance(error, HeadwaterError):
        return f"{type(error).__name__}: {error}"
    if not isinstance(error, _OF_RECORDS):
        raise error
    return str(error)


@dataclass(frozen=True)
class Rejected:
    """One rejected record. It travels with the epoch that read it, as a record does."""

    raw: bytes | None
    """The bytes as they came; None if there are none to keep."""
    error: str
    """What is wrong with it, for people."""
    where: str
    """Where it was found, for people: a file and line, or topic, partition and offset."""
    split_id: str = ""
    """The split that it was read from."""
    position: object = None
    """A position of the split's reader at which the record is read again; None if there is none."""
    timestamp_ms: int | None = None
    """Of the record, if the source knows it."""
    attributes: dict[str, bytes | str | int | None] = field(default_factory=dict)
    """What else the source knows about it: key, headers ..."""
    replaces: str = ""
    """The id of the dead letter that was read again and rejected again."""


REJECTED_TAG_ID = "headwater-rejected"
"""The side output of a source that carries its `Rejected` records."""
