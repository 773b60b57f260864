"""A text is cut into statements where a statement ends, and nowhere else."""

from __future__ import annotations

import pytest

from headwater.cli.sql.script import Piece, pieces


@pytest.mark.parametrize(
    ("text", "found", "rest"),
    [
        ("SELECT 1;", ["SELECT 1"], ""),
        ("SELECT 1; SELECT 2;\n", ["SELECT 1", "SELECT 2"], ""),
        ("SELECT 1", [], "SELECT 1"),
        ("SELECT ';';", ["SELECT ';'"], ""),
        ("SELECT 'it''s;';", ["SELECT 'it''s;'"], ""),
        ("SELECT `a;b` FROM t;", ["SELECT `a;b` FROM t"], ""),
        ("SELECT 'open; ", [], "SELECT 'open; "),
        ("/* ; */ SELECT 1; -- ; done", ["/* ; */ SELECT 1"], ""),
        ("-- only a comment;\n", [], ""),
        (";;", [], ""),
        ("SELECT /*+ OPTIONS('a'='b;') */ 1;", ["SELECT /*+ OPTIONS('a'='b;') */ 1"], ""),
        (
            "EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT 1; INSERT INTO b SELECT 2; END;SELECT 3;",
            ["EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT 1; INSERT INTO b SELECT 2; END", "SELECT 3"],
            "",
        ),
        (
            "BEGIN STATEMENT SET; INSERT INTO a SELECT CASE WHEN x THEN 1 END FROM t; END;",
            ["BEGIN STATEMENT SET; INSERT INTO a SELECT CASE WHEN x THEN 1 END FROM t; END"],
            "",
        ),
        ("SELECT CASE WHEN a THEN 1 END; SELECT 2;", ["SELECT CASE WHEN a THEN 1 END", "SELECT 2"], ""),
        (
            "EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT 1;",
            [],
            "EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT 1;",
        ),
    ],
)
def test_pieces(text: str, found: list[str], rest: str) -> None:
    assert pieces(text) == ([Piece(each) for each in found], rest)


def test_vertical() -> None:
    assert pieces("SELECT 1\\G SELECT 2;") == ([Piece("SELECT 1", True), Piece("SELECT 2")], "")
