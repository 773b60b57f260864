"""What somebody expects of a table in a database before its rows are read: columns, their types, its key. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from headwater.common.errors import HeadwaterError

_TYPES: Final = {
    "boolean": (16,),
    "bytea": (17,),
    "integer": (20, 21, 23, 26),
    "numeric": (1700, 20, 21, 23),
    "float": (700, 701),
    "date": (1082,),
    "time": (1083,),
    "timestamp": (1114,),
    "timestamptz": (1184,),
}
"""{family: oids of PostgreSQL's types}. Texts are all others, and arrays are not checked."""
_NO_TEXTS: Final = frozenset(oid for oids in _TYPES.values() for oid in oids)


@dataclass(frozen=True)
class ExpectedColumn:
    name: str
    declared: str
    """Its type, for people."""
    family: str
    """A key of `_TYPES`, "text", or "" for one that is not checked."""


@dataclass(frozen=True)
class ExpectedTable:
    """Columns that are read, and those that name a row (none: rows have no names)."""

    table: str
    columns: tuple[ExpectedColumn, ...]
    key: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(each.name for each in self.columns)

    @property
    def texts(self) -> frozenset[str]:
        return frozenset(each.name for each in self.columns if each.family == "text")

    def check(self, owner: str, codes: Mapping[str, Any], *, postgres_types: bool = False) -> None:
        """Raise HeadwaterError if a column is missing, or of another type. `codes`: {column: its type}."""
        for each in self.columns:
            if each.name not in codes:
                near = difflib.get_close_matches(each.name, list(codes), 1)
                cure = f"; did you mean '{near[0]}'?" if near else f"; it has {', '.join(codes)}"
                raise HeadwaterError(f"{owner}: table '{self.table}' has no column '{each.name}'{cure}")
            oid = codes[each.name]
            if not postgres_types or not each.family or (each.family == "text" and oid not in _NO_TEXTS):
                continue
            if oid not in _TYPES.get(each.family, ()):
                found = next((name for name, oids in _TYPES.items() if oid in oids), "of another type")
                raise HeadwaterError(
                    f"{owner}: column '{each.name}' of table '{self.table}' is {found} in the database, and "
                    f"{each.declared} was declared; declare it as what it is, and CAST in the query"
                )

    def check_key(self, owner: str, key: Sequence[str]) -> None:
        """Raise HeadwaterError if the expected key does not name rows: `key` is what does."""
        if self.key and not set(key) <= set(self.key):
            raise HeadwaterError(
                f"{owner}: the rows of table '{self.table}' have the primary key ({', '.join(key)}), and PRIMARY KEY "
                f"({', '.join(self.key)}) was declared, which does not tell them apart; declare that one"
            )
