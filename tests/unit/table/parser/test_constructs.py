"""Every statement form of Flink's reference parses, and what is printed parses to the same tree."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.table.parser.parse import parse_statement, parse_statements
from tests.unit.table.parser.statement_text import print_statement

HERE = Path(__file__).parent
CONSTRUCTS = (HERE / "constructs.sql").read_text(encoding="utf-8").rstrip("\n").split("\n---\n")
NEXMARK = sorted((HERE / "nexmark").glob("*.sql"))


def test_there_are_many() -> None:
    assert len(CONSTRUCTS) == len(set(CONSTRUCTS)) >= 220
    assert len(NEXMARK) == 24


@pytest.mark.parametrize("sql", CONSTRUCTS)
def test_what_is_printed_is_the_same_statement(sql: str) -> None:
    statement = parse_statement(sql)
    printed = print_statement(statement)
    assert parse_statement(printed) == statement
    assert print_statement(parse_statement(printed)) == printed


@pytest.mark.parametrize("path", NEXMARK, ids=lambda path: path.stem)
def test_nexmark_parses(path: Path) -> None:
    statements = parse_statements(path.read_text(encoding="utf-8"))
    assert statements
    for statement in statements:
        assert parse_statement(print_statement(statement)) == statement
