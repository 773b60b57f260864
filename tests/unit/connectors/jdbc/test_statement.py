from __future__ import annotations

import pytest

from headwater.common.errors import ConfigurationError
from headwater.datastream.connectors.jdbc.statement import CopyPlan, Statement
from headwater.datastream.connectors.jdbc.url import JdbcUrl, parse_url


def test_values_are_counted_and_renamed_outside_of_texts_and_comments() -> None:
    statement = Statement.of(
        """UPDATE t SET a = ?, "b?" = '?''?%' /* ? */ WHERE c LIKE 'x%' AND d = $x$ ? $x$ AND e = ? -- ?"""
    )
    assert statement.parameters == 2
    assert statement.with_numbers().count("$1") == 1 and "e = $2" in statement.with_numbers()
    assert "'?''?%%'" in statement.with_percents() and "e = %s" in statement.with_percents()


@pytest.mark.parametrize(
    ("sql", "plan"),
    [
        ("INSERT INTO t (a, b) VALUES (?, ?)", CopyPlan("t", ("a", "b"))),
        ('insert into s."T x" ("A",b) values (?,?);', CopyPlan('s."T x"', ('"A"', "b"))),
        (
            "INSERT INTO t (a, b) VALUES (?, ?) ON CONFLICT (a) DO NOTHING",
            CopyPlan("t", ("a", "b"), "ON CONFLICT (a) DO NOTHING"),
        ),
        (
            "INSERT INTO t (a, b) VALUES (?, ?) ON CONFLICT (a) DO UPDATE SET b = EXCLUDED.b",
            CopyPlan("t", ("a", "b"), "ON CONFLICT (a) DO UPDATE SET b = EXCLUDED.b", ("a",)),
        ),
    ],
)
def test_what_can_be_copied(sql: str, plan: CopyPlan) -> None:
    assert Statement.of(sql).copy_plan() == plan


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO t VALUES (?, ?)",
        "INSERT INTO t (a, b) VALUES (?, now())",
        "INSERT INTO t (a, b) VALUES (?, ? + 1)",
        "INSERT INTO t (a, b) VALUES (?, ?) RETURNING a",
        # The second row of a key adds to the first: both must be seen.
        "INSERT INTO t (a, b) VALUES (?, ?) ON CONFLICT (a) DO UPDATE SET b = t.b + EXCLUDED.b",
        # The first row of a key decides c.
        "INSERT INTO t (a, b, c) VALUES (?, ?, ?) ON CONFLICT (a) DO UPDATE SET b = EXCLUDED.b",
        "INSERT INTO t (a, b) VALUES (?, ?) ON CONFLICT (a) DO UPDATE SET b = EXCLUDED.b WHERE t.b < EXCLUDED.b",
        "UPDATE t SET a = ? WHERE b = ?",
    ],
)
def test_what_cannot_be_copied(sql: str) -> None:
    assert Statement.of(sql).copy_plan() is None


@pytest.mark.parametrize("sql", ["", "INSERT INTO t (a) VALUES (1)", None])
def test_statements_that_take_no_row(sql: str) -> None:
    with pytest.raises(ConfigurationError, match="JdbcSink"):
        Statement.of(sql)


@pytest.mark.parametrize(
    ("url", "parsed"),
    [
        (
            "jdbc:postgresql://a:1,b/x?ssl=true&user=%40",
            JdbcUrl("postgres", (("a", 1), ("b", None)), "x", {"ssl": "true", "user": "@"}),
        ),
        ("jdbc:postgresql:x", JdbcUrl("postgres", (), "x", {})),
        ("jdbc:mysql://[::1]:3306/x", JdbcUrl("mysql", (("::1", 3306),), "x", {})),
        ("jdbc:mariadb://h/x", JdbcUrl("mysql", (("h", None),), "x", {})),
        ("jdbc:sqlite:/a/b.db", JdbcUrl("sqlite", (), "/a/b.db", {})),
    ],
)
def test_urls(url: str, parsed: JdbcUrl) -> None:
    assert parse_url(url) == parsed


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://h/x",
        "jdbc:oracle:thin:@h",
        "jdbc:sqlite::memory:",
        "jdbc:postgresql://u:p@h/x",
        "jdbc:mysql://h:x/",
    ],
)
def test_urls_that_mean_nothing(url: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        parse_url(url)
    assert ":p@" not in str(raised.value)
