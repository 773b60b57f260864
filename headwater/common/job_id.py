"""The identity of a job."""

from __future__ import annotations

import uuid


class JobID:
    """A job's id: 32 hexadecimal digits, kept across restarts on the same checkpoint directory."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    @staticmethod
    def generate() -> JobID:
        """A fresh random id."""
        return JobID(uuid.uuid4().hex)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, JobID) and self._value == other._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __str__(self) -> str:
        return self._value

    def __repr__(self) -> str:
        return f"JobID({self._value!r})"
