"""Which columns a name can mean at a place of a query."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, field

from headwater.table.plan.expressions import Column
from headwater.table.types.logical import RowType


@dataclass(frozen=True)
class Range:
    """A relation of FROM: what it is called, and its columns."""

    name: tuple[str, ...]
    """The alias, or all parts of a table's full name; () for one without a name."""
    columns: tuple[Column, ...]

    def is_called(self, qualifier: Sequence[str]) -> bool:
        return bool(qualifier) and tuple(qualifier) == self.name[-len(qualifier) :]


@dataclass(frozen=True)
class Found:
    """A column, how many parts of the name it took, and whether it belongs to a query around this one."""

    column: Column
    used: int
    outer: bool


@dataclass
class Scope:
    """The ranges of one SELECT, and the scope around it for correlated subqueries."""

    ranges: list[Range] = field(default_factory=list)
    parent: Scope | None = None
    hidden: frozenset[int] = frozenset()
    """Ids of columns that a plain name and `*` do not mean: USING or NATURAL has made one of two, in a range without a
    name."""

    def visible(self) -> list[Column]:
        """All that `*` means."""
        return [column for each in self.ranges for column in each.columns if column.id not in self.hidden]

    def find(self, parts: Sequence[str]) -> Found | list[Column] | None:
        """The column that a name means; all candidates if there are several; None if there is none.

        `a.b` is column b of range a, or field b of column a: the range wins.
        """
        for depth, scope in enumerate(self._chain()):
            found = scope._find_here(parts)
            if isinstance(found, list):
                return found
            if found is not None:
                return Found(found[0], found[1], depth > 0)
        return None

    def _chain(self) -> list[Scope]:
        chain, scope = [], self
        while scope is not None:
            chain.append(scope)
            scope = scope.parent  # type: ignore[assignment]
        return chain

    def _find_here(self, parts: Sequence[str]) -> tuple[Column, int] | list[Column] | None:
        for length in range(min(len(parts) - 1, 3), 0, -1):
            called = [each for each in self.ranges if each.is_called(parts[:length])]
            matches = [column for each in called for column in each.columns if column.name == parts[length]]
            if len(matches) == 1:
                return matches[0], length + 1
            if matches:
                return matches
        plain = [column for column in self.visible() if column.name == parts[0]]
        if len(plain) == 1:
            return plain[0], 1
        return plain or None

    def unknown(self, parts: Sequence[str]) -> str:
        """The text of the error that a name means nothing here."""
        name = ".".join(parts)
        qualified = [each for each in self.ranges if each.is_called(parts[:-1])]
        ranges = qualified or [each for scope in self._chain() for each in scope.ranges]
        names = list(dict.fromkeys(column.name for each in ranges for column in each.columns))
        tables = [each.name[-1] for each in self.ranges if each.name]
        if len(parts) > 1 and not qualified and not any(parts[0] == known for known in names):
            near = difflib.get_close_matches(parts[0], tables, n=1, cutoff=0.6)
            cure = f"; did you mean '{near[0]}'?" if near else f"; there is {', '.join(tables)}" if tables else ""
            return f"there is no table '{parts[0]}' in this query for '{name}'{cure}"
        near = [known for known in names if known.lower() == parts[-1].lower()]  # names differ by case, too
        near = near or difflib.get_close_matches(parts[-1], names, n=1, cutoff=0.6)
        cure = f"; did you mean '{near[0]}'?" if near else ""
        shown = f" (there is {', '.join(names[:20])})" if names else " (there is no table in FROM)"
        return f"there is no column '{name}'{cure}{shown}"


def field_names(row: RowType) -> str:
    return ", ".join(field.name for field in row.fields)
