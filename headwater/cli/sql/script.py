"""Cuts a text into statements. Semicolons in strings, comments, quoted names and statement sets end nothing."""

from __future__ import annotations

import re
from dataclasses import dataclass

_PART = re.compile(
    r"""
      (?P<skip>--[^\n]*(?:\n|$)|/\*(?!\+).*?\*/|'(?:[^']|'')*'|`(?:[^`]|``)*`)
    | (?P<open>'|`|/\*(?!\+))
    | (?P<word>[^\W\d][\w$]*)
    | (?P<vertical>\\[gG])
    | (?P<end>;)
    | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True)
class Piece:
    """A statement, without what ended it."""

    text: str
    vertical: bool = False
    """It ended with `\\G`: show the rows one below the other."""


def pieces(text: str) -> tuple[list[Piece], str]:
    """The statements of `text` that are complete, and the rest, which is not. Comments alone are no statement."""
    found: list[Piece] = []
    start = 0
    words: list[str] = []
    in_set, empty = False, True
    for match in _PART.finditer(text):
        kind = match.lastgroup
        if kind == "open":  # a string or a comment that is not closed yet
            empty = False
            break
        if kind == "word":
            words.append(match.group().upper())
            if words[-2:] == ["SET", "BEGIN"] or words[-3:] == ["BEGIN", "STATEMENT", "SET"]:
                in_set = True
            elif in_set and words[-1] == "END" and "CASE" not in words[_last_end(words) :]:
                in_set = False
        if kind in ("end", "vertical") and not (in_set and kind == "end"):
            if not empty:
                found.append(Piece(text[start : match.start()].strip(), kind == "vertical"))
            start, words, in_set, empty = match.end(), [], False, True
        elif match.group()[0] in "'`" or (kind != "skip" and not match.group().isspace()):
            empty = False
    rest = text[start:]
    return found, "" if empty else rest


def _last_end(words: list[str]) -> int:
    """Where the search for the CASE of the END at the end begins: after the END before it."""
    before = [place for place, word in enumerate(words[:-1]) if word == "END"]
    return before[-1] + 1 if before else 0
