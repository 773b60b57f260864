"""Look-ups whose keys the database spells in another type, or in other letters."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from headwater.common.errors import HeadwaterError
from headwater.datastream.connectors.jdbc import JdbcLookup
from tests.postgres_server import jdbc_url
from tests.unit.connectors.jdbc import tables

ID = "550e8400-e29b-41d4-a716-446655440000"


@pytest.fixture
def keyed(database: str) -> Iterator[str]:
    tables.run(
        database,
        "CREATE TABLE keyed (u uuid, c char(5), n numeric(9, 3), v varchar(9), name text)",
        f"INSERT INTO keyed VALUES ('{ID}', 'ab', 0.1, 'x', 'one'), (NULL, '', 2, 'y ', 'two')",
    )
    yield database


def look_up(database: str, columns: str, *keys: Any) -> list[list[str]]:
    lookup = JdbcLookup(tables.options(jdbc_url(database)), "keyed", list(columns), ["name"], cache_max_rows=10)
    try:
        first = lookup.lookup(keys)
        assert lookup.lookup(keys) == first and set(first) == set(keys)
        return [[row.name for row in first[key]] for key in keys]
    finally:
        lookup.close()


@pytest.mark.parametrize(
    ("column", "keys"),
    [
        ("u", [ID, UUID(ID)]),
        ("c", ["ab", "ab   ", "ab "]),
        ("n", [0.1, Decimal("0.1"), Decimal("0.10")]),
        ("v", ["x"]),
    ],
)
def test_a_key_may_be_spelled_otherwise_than_the_driver_does(keyed: str, column: str, keys: list[Any]) -> None:
    for key in keys:
        assert look_up(keyed, column, key) == [["one"]]


def test_several_spellings_at_once(keyed: str) -> None:
    assert look_up(keyed, "c", "ab", "ab ", "a", "") == [["one"], ["one"], [], ["two"]]
    assert look_up(keyed, "n", Decimal("0.1"), Decimal("0.2"), 2) == [["one"], [], ["two"]]
    assert look_up(keyed, "cn", ("ab", 0.1), ("b", 0.1)) == [["one"], []]


def test_spaces_of_other_texts_count(keyed: str) -> None:
    assert look_up(keyed, "v", "y", "y ") == [[], ["two"]]


def test_a_row_under_a_key_that_nobody_asked_for_is_an_error(keyed: str) -> None:
    with pytest.raises(HeadwaterError, match=r"a row with \(u\) = UUID\('550e.* none of the keys .*'550E84") as raised:
        look_up(keyed, "u", ID.upper())
    assert "types that the table has" in str(raised.value)
