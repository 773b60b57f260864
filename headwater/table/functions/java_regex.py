"""Java's regular expressions, as far as Python's have the same: Flink's functions take them."""

from __future__ import annotations

import re
import warnings
from functools import lru_cache

_CLASSES = {
    r"\p{Alpha}": "A-Za-z",
    r"\p{Digit}": "0-9",
    r"\p{Alnum}": "A-Za-z0-9",
    r"\p{Upper}": "A-Z",
    r"\p{Lower}": "a-z",
    r"\p{Punct}": r"!-/:-@\[-`{-~",
    r"\p{Space}": r" \t\n\x0B\f\r",
    r"\p{XDigit}": "0-9a-fA-F",
    r"\h": r" \t\xA0\u2000-\u200a\u202f\u205f\u3000",
}
_TOKEN = re.compile(r"\\p\{\w+\}|\\.|\(\?<(?![=!])|\[|\]|.", re.DOTALL)


@lru_cache(maxsize=1000)
def compile_java(pattern: str) -> re.Pattern[str] | None:
    """Return the pattern compiled for Python, or None if it is malformed."""
    try:
        with warnings.catch_warnings():  # a set operation of Java looks like a mistake to Python
            warnings.simplefilter("ignore", FutureWarning)
            return re.compile(_translated(pattern), re.ASCII)
    except re.error:
        return None


def _translated(pattern: str) -> str:
    found: list[str] = []
    depth = 0
    for token in _TOKEN.findall(pattern):
        if token in _CLASSES:
            found.append(_CLASSES[token] if depth else f"[{_CLASSES[token]}]")
        elif token == "(?<":
            found.append("(?P<")
        elif token in (r"\z", r"\Z"):
            found.append(r"\Z" if token == r"\z" else r"(?=\n?\Z)")
        else:
            if token == "[":
                depth += 1
            elif token == "]" and depth:
                depth -= 1
            found.append(token)
    return "".join(found)


_PLAIN_TOKEN = re.compile(
    r"""\\[.^$|?*+()\[\]{}\\dswDSWb/&="'-]  # an escape that both have
    |\[\^?(?:\\.|(?!&&)[^\[\]\\])+\]      # a class without operators
    |\((?!\?)                             # a group
    |[^\\\[\]$]                           # anything else but $, which means more in Java""",
    re.DOTALL | re.VERBOSE,
)


@lru_cache(maxsize=1000)
def re2_with_group(pattern: str, group: int) -> str | None:
    """Return the pattern for RE2 with that group called `g`, or None if RE2 might see it differently.

    The group must take part in every match: RE2 cannot tell a group that did not from an empty one.
    """
    if compile_java(pattern) is None or group < 0:
        return None
    if group == 0:
        return None if "(" in pattern.replace("\\(", "") or not _plain(pattern) else f"(?P<g>{pattern})"
    if not _plain(pattern):
        return None
    found, depth, count, inside, at = [], 0, 0, False, 0
    for token in _PLAIN_TOKEN.findall(pattern):
        at += len(token)
        if token == "(":
            count += 1
            depth += 1
            if count == group and depth != 1:
                return None
            inside = inside or count == group
            token = "(?P<g>" if count == group else "(?:"
        elif token == ")":
            depth -= 1
            if inside and depth == 0:
                inside = False
                if pattern[at : at + 1] in ("?", "*", "{"):
                    return None
        elif token == "|" and depth == 0:
            return None
        found.append(token)
    return "".join(found) if count >= group else None


def _plain(pattern: str) -> bool:
    """Whether it has nothing but what Java and RE2 have in common."""
    possessive = re.search(r"[*+?}]\+", pattern)
    return possessive is None and "".join(_PLAIN_TOKEN.findall(pattern)) == pattern and pattern.isascii()
