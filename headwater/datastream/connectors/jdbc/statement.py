"""What a statement with `?` for values is: as each driver wants it, and whether rows can be copied instead. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from headwater.common.errors import ConfigurationError, short_repr

_TOKENS: Final = re.compile(
    r"""
    '(?:[^']|'')*' | "(?:[^"]|"")*" | `[^`]*`     # texts and quoted names
    | --[^\n]* | /\*.*?\*/                                # comments
    | \$(\w*)\$.*?\$\1\$                                 # texts of PostgreSQL between dollars
    | \?                                                 # a value
    | %
    """,
    re.VERBOSE | re.DOTALL,
)
_TARGET: Final = re.compile(r"""\s*(?:INSERT\s+INTO|REPLACE\s+INTO|UPDATE|DELETE\s+FROM)\s+([\w$.]+|`[^`]+`)""", re.I)
_NAME: Final = r'(?:[A-Za-z_][\w$]*|"(?:[^"]|"")+")'
_INSERT: Final = re.compile(
    rf"""\s*INSERT\s+INTO\s+(?P<table>{_NAME}(?:\s*\.\s*{_NAME})?)\s*
    \(\s*(?P<columns>{_NAME}(?:\s*,\s*{_NAME})*)\s*\)\s*
    VALUES\s*\(\s*\?(?:\s*,\s*\?)*\s*\)\s*(?P<rest>.*?)\s*;?\s*""",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_ANY_NAME: Final = rf"(?:{_NAME}|`[^`]+`)"
_VALUES: Final = re.compile(
    rf"""\s*INSERT\s+INTO\s+(?P<table>{_ANY_NAME}(?:\s*\.\s*{_ANY_NAME})?)\s*
    \(\s*(?P<columns>{_ANY_NAME}(?:\s*,\s*{_ANY_NAME})*)\s*\)\s*
    VALUES\s*\(\s*\?(?:\s*,\s*\?)*\s*\)(?P<rest>.*)""",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_CONFLICT: Final = re.compile(
    rf"""ON\s+CONFLICT\s*\(\s*(?P<keys>{_NAME}(?:\s*,\s*{_NAME})*)\s*\)\s*DO\s+
    (?:(?P<nothing>NOTHING)|UPDATE\s+SET\s+(?P<sets>{_NAME}\s*=\s*EXCLUDED\s*\.\s*{_NAME}
    (?:\s*,\s*{_NAME}\s*=\s*EXCLUDED\s*\.\s*{_NAME})*))""",
    re.VERBOSE | re.IGNORECASE,
)


@dataclass(frozen=True)
class CopyPlan:
    """Rows of this INSERT can come as a bulk copy."""

    table: str
    columns: tuple[str, ...]
    conflict: str = ""
    """The clause behind the values, if there is one: rows are copied into a temporary table first."""
    last_of: tuple[str, ...] = ()
    """Of rows with the same values in these columns only the last one counts."""


@dataclass(frozen=True)
class Statement:
    """A statement of the user's."""

    sql: str
    parameters: int

    @staticmethod
    def of(sql: str) -> Statement:
        if not isinstance(sql, str) or not sql.strip():
            raise ConfigurationError(
                f"JdbcSink: expected a statement such as 'INSERT INTO ...', found {short_repr(sql)}"
            )
        count = sum(match[0] == "?" for match in _TOKENS.finditer(sql))
        if count == 0:
            raise ConfigurationError(f"JdbcSink: '{sql}' has no ? for the fields of a row; expected one for each")
        return Statement(sql, count)

    def table(self) -> str | None:
        """The table that it writes to, without quotes; None if that cannot be told."""
        found = _TARGET.match(self.sql)
        return None if found is None else unquoted(found[1])

    def inserted(self) -> tuple[str, tuple[str, ...]] | None:
        """The table, as it is written, and the columns that the values go to, if each is a value of a plain INSERT."""
        found = _VALUES.fullmatch(self.sql)
        columns = () if found is None else tuple(re.findall(_ANY_NAME, found["columns"]))
        if found is None or len(columns) > self.parameters or self.sql[: found.end("columns")].count("?"):
            return None
        return found["table"], columns

    def with_percents(self) -> str:
        """For drivers whose values are `%s`."""
        return _TOKENS.sub(lambda match: {"?": "%s", "%": "%%"}.get(match[0], match[0].replace("%", "%%")), self.sql)

    def with_numbers(self) -> str:
        """For PostgreSQL's own `$1`."""
        numbers = iter(range(1, self.parameters + 1))
        return _TOKENS.sub(lambda match: f"${next(numbers)}" if match[0] == "?" else match[0], self.sql)

    def copy_plan(self) -> CopyPlan | None:
        """How PostgreSQL can take the rows in bulk with the same result, or None.

        That is an INSERT of plain values. With ON CONFLICT, only if the row that wins has all its values from the last
        one of its key (or the clause is DO NOTHING): then the order within a batch can be settled beforehand.
        """
        insert = _INSERT.fullmatch(self.sql)
        if insert is None:
            return None
        columns = tuple(_names(insert["columns"]))
        if len(columns) != self.parameters:
            return None
        if not insert["rest"]:
            return CopyPlan(insert["table"], columns)
        clause = _CONFLICT.fullmatch(insert["rest"])
        if clause is None:
            return None
        if clause["nothing"]:
            return CopyPlan(insert["table"], columns, insert["rest"])
        keys = tuple(_names(clause["keys"]))
        pairs = [
            re.split(r"\s*=\s*EXCLUDED\s*\.\s*", each, flags=re.IGNORECASE)
            for each in _names(clause["sets"], pairs=True)
        ]
        if any(left.strip() != right.strip() for left, right in pairs):
            return None
        updated = {left.strip() for left, _ in pairs}
        if not set(keys) <= set(columns) or set(columns) - set(keys) != updated - set(keys):
            return None
        return CopyPlan(insert["table"], columns, insert["rest"], keys)


def unquoted(name: str) -> str:
    """A name without the quotes around it."""
    for quote in '"`':
        if len(name) > 1 and name[0] == name[-1] == quote:
            return name[1:-1].replace(quote * 2, quote)
    return name


def _names(text: str, *, pairs: bool = False) -> list[str]:
    one = rf"{_NAME}\s*=\s*EXCLUDED\s*\.\s*{_NAME}" if pairs else _NAME
    return re.findall(one, text, re.IGNORECASE)
