"""What a committer notes beside its output in checkpoint storage: for as long as there are checkpoints of the job."""

from __future__ import annotations

from typing import Final

from headwater.common.connector import OutputFiles

NOTE: Final = "marker-"
"""Begins the name of a note, which is no output."""


def read_note(files: OutputFiles | None, name: str) -> bytes | None:
    """What was noted; None: nothing."""
    if files is None:
        return None
    try:
        with files.open(name) as file:
            return file.read()
    except FileNotFoundError:
        return None


def write_note(files: OutputFiles | None, name: str, content: bytes) -> None:
    if files is not None:
        with files.write(name) as file:
            file.write(content)


def first_note(files: OutputFiles | None, name: str, new: bytes) -> bytes:
    """What was noted first: `new`, if nothing was.

    Part of the name of a job's mark must come from such a note: a job whose checkpoints were deleted counts its epochs
    from the beginning, and its old mark would swallow its output. Make `new` from the first output, so that two drivers
    that both begin agree.
    """
    noted = read_note(files, name)
    if noted is None:
        write_note(files, name, new)
    return new if noted is None else noted
