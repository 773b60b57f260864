"""The function of users that q14 calls."""

from __future__ import annotations

from headwater.table import udf


@udf
def count_char(text: str | None, letter: str) -> int:
    return 0 if text is None else text.count(letter)
