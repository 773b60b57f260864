"""Glob patterns for stores that have none of their own: which of the files below a directory one means. Pure."""

from __future__ import annotations

import glob
import re
from collections.abc import Callable


def directory_of(pattern: str) -> str:
    """The part of a path before its first wildcard: what has to be listed. The path itself, if it has none."""
    if not glob.has_magic(pattern):
        return pattern
    parts = pattern.split("/")
    return "/".join(parts[: next(index for index, part in enumerate(parts) if glob.has_magic(part))])


def matcher(pattern: str) -> Callable[[str], bool]:
    """Return a function that says whether a file is meant: its path matches, or that of a directory above it does.

    As with local files: `*` and `?` stay inside a directory, `**` is any number of them.
    """
    parts = pattern.split("/")
    text = "".join(
        "(?:[^/]+/)*" if part == "**" and index + 1 < len(parts) else _translated(part) + "/"
        for index, part in enumerate(parts)
    ).removesuffix("/")
    compiled = re.compile(text if "**" in parts else text + "(?:/.*)?")
    return lambda path: compiled.fullmatch(path) is not None


def _translated(part: str) -> str:
    """A regular expression for one name. (Python 3.13 has glob.translate.)"""
    if part == "**":
        return ".*"
    pieces = re.split(r"(\*|\?|\[!?\]?[^\]]*\])", part)
    return "".join(_piece(piece) for piece in pieces)


def _piece(piece: str) -> str:
    if piece == "*":
        return "[^/]*"
    if piece == "?":
        return "[^/]"
    if len(piece) > 2 and piece[0] == "[" and piece[-1] == "]":
        negated, members = ("^", piece[2:-1]) if piece[1] == "!" else ("", piece[1:-1])
        escaped = _SPECIAL_MEMBERS.sub(r"\\\g<0>", members)
        return f"[{negated}{escaped}]"
    return re.escape(piece)


_SPECIAL_MEMBERS = re.compile(r"[\\^\]\[&~|]")
