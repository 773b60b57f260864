"""What random queries are made of: sources, select lists, conditions, aggregates, orders."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.unit.table.stream.random_sql.choices import Choices
from tests.unit.table.stream.random_sql.expressions import NUMBERS, Col, Expressions, dialect

BASE = (Col("k", "str"), Col("v", "big"), Col("id", "int"), Col("d", "dec"), Col("f", "dbl"), Col("b", "bool"))


@dataclass(frozen=True)
class Rel:
    """A query, its columns, and about how many rows it has."""

    text: str
    columns: tuple[Col, ...]
    rows: int

    def sql(self, duck: bool = False) -> str:
        return dialect(self.text, duck)


class Parts:
    """Parts of queries on `t` and `u`. `timed`: their `ts` is an event time, and nothing is updated."""

    def __init__(self, choices: Choices, timed: bool = False) -> None:
        self.choose = choices
        self.expressions = Expressions(choices)
        self.base = (*BASE, Col("ts", "time" if timed else "ts"))
        self.more: list[Callable[[int], Rel]] = []
        """Other kinds of leaves."""

    def query(self, depth: int) -> Rel:
        raise NotImplementedError

    def source(self, depth: int) -> tuple[str, list[Col], int]:
        """What stands behind FROM, and its columns with their alias."""
        alias = self.choose.name("r")
        if depth <= 0 and not (self.more and self.choose.chance(40)):
            table = self.choose.pick(["t", "u"])
            return f"{table} AS {alias}", [each.of(alias) for each in self.base], 16 if table == "t" else 8
        rel = self.query(depth)
        return f"({rel.text}) AS {alias}", [each.of(alias) for each in rel.columns], rel.rows

    def select(self, scope: Sequence[Col], most: int = 4) -> tuple[str, tuple[Col, ...]]:
        """A select list, and the columns that it makes."""
        found = [self.expressions.any(scope, 2) for _ in range(1 + self.choose.below(most))]
        # The same column of another table: one must not be taken for the other.
        twins = [
            each for each in scope if each not in found and each.name.split(".")[-1] == found[0].name.split(".")[-1]
        ]
        found += twins[:1]
        return self.named(found)

    def named(self, found: Sequence[Col]) -> tuple[str, tuple[Col, ...]]:
        """Expressions with new names, and these columns."""
        columns = tuple(Col(self.choose.name("c"), each.type) for each in found)
        return ", ".join(f"{e.name} AS {c.name}" for e, c in zip(found, columns, strict=True)), columns

    def where(self, scope: Sequence[Col], percent: int = 40) -> str:
        return f" WHERE {self.expressions.of('bool', scope, 2)}" if self.choose.chance(percent) else ""

    def call(self, scope: Sequence[Col], over: bool = False) -> Col:
        """An aggregate function. Not those whose result depends on the order of rows."""
        form = self.choose.below(9)
        if form == 0:
            call, kind = "COUNT(*)", "big"
        elif form in (1, 2):
            distinct = "" if over else self.choose.pick(["", "DISTINCT "])
            call, kind = f"COUNT({distinct}{self.expressions.any(scope, 1).name})", "big"
        elif form in (3, 4, 5):
            kind = self.choose.pick(NUMBERS)
            distinct = "" if over or kind == "dbl" else self.choose.pick(["", "", "DISTINCT "])
            call = f"SUM({distinct}{self.expressions.of(kind, scope, 1)})"
        elif form == 6:
            kind = self.choose.pick(["big", "int"])
            argument = self.expressions.of(kind, scope, 1)
            return (
                Col(f"⟦AVG({argument})¦CAST(trunc(AVG({argument})) AS BIGINT)⟧", kind)
                if not over
                else Col(f"SUM({argument})", kind)
            )
        else:
            kind = self.choose.pick(("big", "str", "int", "dec", "dbl", "ts"))
            call = f"{'MIN' if form == 7 else 'MAX'}({self.expressions.of(kind, scope, 1)})"
        if not over and self.choose.chance(20):
            call += f" FILTER (WHERE {self.expressions.of('bool', scope, 1)})"
        return Col(call, kind)

    def calls(self, scope: Sequence[Col], most: int = 3) -> tuple[str, tuple[Col, ...]]:
        return self.named([self.call(scope) for _ in range(1 + self.choose.below(most))])

    def having(self, keys: Sequence[Col], scope: Sequence[Col]) -> str:
        if not self.choose.chance(25):
            return ""
        return f" HAVING {self.expressions.of('bool', [*keys, self.call(scope), self.call(scope)], 1)}"

    def order(self, columns: Sequence[Col], total: bool) -> str:
        """Keys for ORDER BY. `total`: all columns, so that rows that are equal in it are the same."""
        keys = [each for each in columns if each.type != "time"] or list(columns)
        first = self.choose.some(keys, 1, 2)
        rest = [each for each in columns if each not in first] if total else []
        tails = ["", " DESC", " NULLS LAST", " DESC NULLS FIRST"]
        return ", ".join(each.name + self.choose.pick(tails) for each in [*first, *rest])

    def partition(self, columns: Sequence[Col]) -> str:
        if self.choose.chance(20):
            return ""
        return f"PARTITION BY {', '.join(each.name for each in self.choose.some(columns, 1, 2))} "
