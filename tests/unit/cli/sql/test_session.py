"""What a statement prints, and what a wrong one says; streams run in process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from headwater.cli.main import main
from headwater.cli.sql.script import Piece, pieces
from headwater.cli.sql.session import Session
from headwater.common.errors import ConfigurationError, SqlError
from headwater.testing import in_process

WORDS = "CREATE TEMPORARY VIEW words AS SELECT * FROM (VALUES ('a', 1), ('b', 2), ('a', 3)) AS t (word, n)"


@pytest.fixture(autouse=True)
def without_spark() -> Iterator[None]:
    with in_process(epoch_records=1):
        yield


def shown(capsys: pytest.CaptureFixture[str], *statements: str, console: Console | None = None) -> str:
    session = Session.of_mode("streaming", {})
    if console is not None:
        session._console = console
    for statement in statements:
        session.run(Piece(statement))
    return capsys.readouterr().out


def test_a_changelog_line_by_line(capsys: pytest.CaptureFixture[str]) -> None:
    out = shown(capsys, WORDS, "SELECT word, SUM(n) AS s FROM words GROUP BY word")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in out.splitlines() if line.startswith("|")]
    assert rows[0] == ["op", "word", "s"]
    table: dict[str, str] = {}
    for op, word, total in rows[1:]:
        if op[0] == "+":
            table[word] = total
        else:
            assert table.pop(word) == total
    assert table == {"a": "4", "b": "2"}


@pytest.mark.parametrize(("mode", "expected"), [("table", ["a", "4"]), ("changelog", ["+", "a"])])
def test_live_views(capsys: pytest.CaptureFixture[str], mode: str, expected: list[str]) -> None:
    console = Console(force_terminal=True, width=80, height=20, color_system=None)
    out = shown(
        capsys,
        WORDS,
        f"SET 'sql-client.execution.result-mode' = '{mode}'",
        "SELECT word, SUM(n) AS s FROM words GROUP BY word",
        console=console,
    )
    assert "Received a total of" in out
    assert any(all(part in line for part in expected) for line in out.splitlines())


def test_an_insert_is_a_job(capsys: pytest.CaptureFixture[str]) -> None:
    out = shown(
        capsys,
        WORDS,
        "CREATE TABLE nowhere (word STRING, n INT) WITH ('connector' = 'blackhole')",
        "SET 'table.dml-sync' = 'true'",
        "INSERT INTO nowhere SELECT word, n FROM words",
        "SHOW JOBS",
    )
    assert "successfully submitted" in out and "Complete execution" in out and "FINISHED" in out


@pytest.mark.parametrize(
    ("statement", "text"),
    [
        ("SET 'sql-client.execution.result-mode' = 'tablo'", "did you mean 'table'"),
        ("SET 'sql-client.execution.rezult-mode' = 'table'", "no setting"),
        ("STOP JOB 'nothing'", "SHOW JOBS"),
        ("SELEC 1", "did you mean SELECT"),
        ("SELECT * FROM nowhere", "nowhere"),
    ],
)
def test_wrong_statements(statement: str, text: str) -> None:
    with pytest.raises(SqlError) as error:
        Session.of_mode("streaming", {}).run(Piece(statement))
    assert text.lower() in str(error.value).lower()


def test_reset(capsys: pytest.CaptureFixture[str]) -> None:
    out = shown(capsys, "SET 'table.local-time-zone' = 'Asia/Tokyo'", "SET", "RESET 'table.local-time-zone'", "SET")
    assert out.count("Asia/Tokyo") == 1


def test_a_file_ends_at_its_first_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "wrong.sql"
    script.write_text("SHOW CATALOGS; -- fine\nSHOW TABLEZ;\nSHOW DATABASES;")
    assert main(["sql", "-f", str(script)]) == 1
    out, err = capsys.readouterr()
    assert "default_catalog" in out and "database name" not in out
    assert "TABLEZ" in err and f"statement 2 of {script}" in err


def test_statements_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    init = tmp_path / "init.sql"
    init.write_text(WORDS)
    assert main(["sql", "-i", str(init), "-e", "SELECT COUNT(*) AS c FROM words\\G"]) == 0
    assert "c: 3" in capsys.readouterr().out
    assert main(["sql", "-f", str(tmp_path / "missing.sql")]) == 2
    assert main(["sql", "-D", "wrong"]) == 2


def test_what_the_help_shows_can_be_read() -> None:
    from headwater.cli.sql.session import HELP

    assert pieces(HELP.replace("'tableau' | 'changelog' | 'table'", "'table'"))[0]


def test_the_mode_can_be_changed(capsys: pytest.CaptureFixture[str]) -> None:
    session = Session.of_mode("batch", {"parallelism.default": "3"})
    found = []
    for statement in ("SET 'execution.runtime-mode' = 'streaming'", "RESET 'execution.runtime-mode'", "RESET"):
        session.run(Piece("EXPLAIN SELECT 1"))
        found.append("Spark SQL" in capsys.readouterr().out)
        session.run(Piece(statement))
    session.run(Piece("EXPLAIN SELECT 1"))
    found.append("Spark SQL" in capsys.readouterr().out)
    assert found == [True, False, True, True]
    assert session.environment.get_config().get("parallelism.default", "") == "3"
    with pytest.raises(ConfigurationError, match="expected one of STREAMING, BATCH, AUTOMATIC, found 'fast'"):
        session.run(Piece("SET 'execution.runtime-mode' = 'fast'"))
