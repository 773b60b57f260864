"""Malformed text: one error that says where it is, what is there, what was expected and what was probably meant.

`malformed.txt` has each text with its error.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.common.errors import SqlError
from headwater.table.parser.parse import parse_statements

CASES = [
    tuple(case.split("\n=>\n"))
    for case in (Path(__file__).parent / "malformed.txt").read_text(encoding="utf-8").rstrip("\n").split("\n---\n")
]


def test_there_are_many() -> None:
    assert len(CASES) >= 60


@pytest.mark.parametrize(("sql", "error"), CASES, ids=[case[0] for case in CASES])
def test_the_error_says_where_and_what(sql: str, error: str) -> None:
    with pytest.raises(SqlError) as raised:
        parse_statements(sql)
    assert str(raised.value) == error


def test_a_caret_stands_under_text_with_tabs() -> None:
    with pytest.raises(SqlError) as raised:
        parse_statements("SELECT\t1,\t+ FROM t")
    assert str(raised.value).endswith("\n  SELECT\t1,\t+ FROM t\n        \t  \t  ^^^^")


def test_the_end_is_shown_behind_the_last_word() -> None:
    with pytest.raises(SqlError, match="line 2, column 7"):
        parse_statements("SELECT a FROM t\n WHERE\n\n  ")
