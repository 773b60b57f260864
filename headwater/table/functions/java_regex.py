"""Java's regular expressions, as far as Python's have the same: Flink's functions take them."""

from __future__ import annotations

import re
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


def java_replacement(text: str) -> str | None:
    r"""Return Java's replacement ($1, ${name}, \$) as Python's, or None if it is malformed."""
    found: list[str] = []
    at = 0
    while at < len(text):
        letter = text[at]
        if letter == "\\":
            at += 1
            if at == len(text):
                return None
            found.append(text[at].replace("\\", "\\\\"))
        elif letter == "$":
            group = re.match(r"\{(\w+)\}|(\d)", text[at + 1 :])
            if group is None:
                return None
            found.append(f"\\g<{group.group(1) or group.group(2)}>")
            at += group.end()
        else:
            found.append(letter)
        at += 1
    return "".join(found)
