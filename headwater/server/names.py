"""What a `:name` in a route may be. A name is parsed before anything is done with it, so no handler sees a bad one."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

LONGEST_NAME = 4096
_HEX = re.compile("[0-9a-fA-F]{32}")
_INTEGER = re.compile("[0-9]{1,18}")
_FILE_NAME = re.compile(r"(?!\.)[\w.+-]{1,255}", re.ASCII)
_PROCESS = re.compile(r"[\w.:()\[\]-]{1,300}", re.ASCII)


def hex_id(text: str) -> str:
    """The id of a job, a vertex or a trigger: 32 hex digits."""
    if _HEX.fullmatch(text) is None:
        raise ValueError("32 hex digits")
    return text.lower()


def index(text: str) -> int:
    if _INTEGER.fullmatch(text) is None:
        raise ValueError("a number that is not negative")
    return int(text)


def file_name(text: str) -> str:
    """One file in a folder that the server chooses: no separator, no leading dot."""
    if _FILE_NAME.fullmatch(text) is None:
        raise ValueError("the name of a file: letters, digits, '.', '_', '+', '-', and no dot at the beginning")
    return text


def process_name(text: str) -> str:
    if _PROCESS.fullmatch(text) is None:
        raise ValueError("the id of a task manager")
    return text


def words(text: str) -> str:
    """Any text without control characters: an operator, a state, a key. It must not become a path."""
    if not text or len(text) > LONGEST_NAME or not text.isprintable():
        raise ValueError(f"text of 1 to {LONGEST_NAME} characters that can be printed")
    return text


NAMES: Mapping[str, Callable[[str], Any]] = {
    "jobid": hex_id,
    "vertexid": hex_id,
    "triggerid": hex_id,
    "checkpointid": index,
    "subtaskindex": index,
    "attempt": index,
    "taskmanagerid": process_name,
    "jarid": file_name,
    "filename": file_name,
    "operator": words,
    "state": words,
    "series": words,
    "key": words,
}
"""{name in a route: its parser, which raises ValueError saying what it expects}"""
