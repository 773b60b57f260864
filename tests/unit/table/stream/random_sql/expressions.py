"""Random expressions of SQL, with their types. Where DuckDB writes one otherwise, the text has both: `⟦flink¦duck⟧`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tests.unit.table.stream.random_sql.choices import Choices

_BOTH = re.compile("⟦([^⟦⟧]*)¦([^⟦⟧]*)⟧")
NUMBERS = ("big", "int", "dec", "dbl")
TYPES = ("big", "str", "int", "bool", "dec", "dbl", "ts")
LITERALS = {
    "big": ["1", "0", "2", "-1", "4", "CAST(3 AS BIGINT)"],
    "int": ["1", "0", "2", "-1", "5"],
    "str": ["'a'", "'b'", "''", "'zz'"],
    "bool": ["TRUE", "FALSE"],
    "dec": ["CAST(1.5 AS DECIMAL(10, 2))", "CAST(0 AS DECIMAL(10, 2))"],
    "dbl": ["CAST(1.5 AS DOUBLE)", "CAST(0 AS DOUBLE)"],
    "ts": ["TIMESTAMP '2024-01-01 00:00:10'", "TIMESTAMP '2024-01-01 00:00:03.200'"],
}
NULLS = {
    "big": "CAST(NULL AS BIGINT)",
    "int": "CAST(NULL AS INT)",
    "str": "CAST(NULL AS ⟦STRING¦VARCHAR⟧)",
    "bool": "CAST(NULL AS BOOLEAN)",
    "dec": "CAST(NULL AS DECIMAL(10, 2))",
    "dbl": "CAST(NULL AS DOUBLE)",
    "ts": "CAST(NULL AS TIMESTAMP⟦(3)¦⟧)",
}


@dataclass(frozen=True)
class Col:
    """`type` is one of `TYPES`, or "time": an event time, which expressions leave alone."""

    name: str
    type: str

    def of(self, alias: str) -> Col:
        return Col(f"{alias}.{self.name}", self.type)


def dialect(text: str, duck: bool) -> str:
    found = 1
    while found:
        text, found = _BOTH.subn(r"\2" if duck else r"\1", text)
    return text


class Expressions:
    """Expressions over columns in scope."""

    def __init__(self, choices: Choices) -> None:
        self.choose = choices

    def any(self, scope: Sequence[Col], depth: int) -> Col:
        """An expression of any type: its text as the name."""
        if scope and not self.choose.chance(40):
            return self.choose.pick(scope)
        own = {each.type for each in scope}
        kind = self.choose.pick([each for each in TYPES if each in own or each == "bool"])
        return Col(self.of(kind, scope, depth), kind)

    def of(self, kind: str, scope: Sequence[Col], depth: int) -> str:
        own = [each.name for each in scope if each.type == kind]
        if depth <= 0 or self.choose.chance(40):
            if own and not self.choose.chance(15):
                return self.choose.pick(own)
            return NULLS[kind] if self.choose.chance(10) else self.choose.pick(LITERALS[kind])
        if self.choose.chance(25):
            return self._either(kind, scope, depth)
        return str(getattr(self, f"_{kind}")(scope, depth - 1))

    def _either(self, kind: str, scope: Sequence[Col], depth: int) -> str:
        one, other = self.of(kind, scope, depth - 1), self.of(kind, scope, depth - 1)
        form = self.choose.below(4)
        if form == 0:
            return f"COALESCE({one}, {other})"
        if form == 1:
            return f"NULLIF({one}, {other})"
        condition = self.of("bool", scope, depth - 1)
        if form == 2:
            return f"CASE WHEN {condition} THEN {one} ELSE {other} END"
        return f"CASE WHEN {condition} THEN {one} WHEN {self.of('bool', scope, depth - 1)} THEN {other} END"

    def _number(self, kind: str, scope: Sequence[Col], depth: int) -> str:
        one = self.of(kind, scope, depth)
        form = self.choose.below(4)
        if form == 0:
            return f"ABS({one})"
        if form == 1:
            return f"(- {one})"
        return f"({one} {'+-'[form - 2]} {self.of(kind, scope, depth)})"

    def _int(self, scope: Sequence[Col], depth: int) -> str:
        form = self.choose.below(5)
        if form == 0:
            return self._number("int", scope, depth)
        if form == 1:
            return f"MOD({self.of('int', scope, depth)}, 3)"
        if form == 2:
            one = self.of("int", scope, depth)
            return f"({one} ⟦/¦//⟧ 2)"
        if form == 3:
            return f"CAST(CHAR_LENGTH({self.of('str', scope, depth)}) AS INT)"
        return f"({self.of('int', scope, depth)} * 2)"

    def _big(self, scope: Sequence[Col], depth: int) -> str:
        form = self.choose.below(5)
        if form == 0:
            return self._number("big", scope, depth)
        if form == 1:
            return f"CAST({self.of('int', scope, depth)} AS BIGINT)"
        if form == 2:
            return f"({self.of('big', scope, depth)} ⟦/¦//⟧ 3)"
        if form == 3:
            # DuckDB makes a DOUBLE of the seconds of a constant NULL.
            return f"⟦¦CAST(⟧EXTRACT(SECOND FROM {self.of('ts', scope, depth)})⟦¦ AS BIGINT)⟧"
        return f"({self.of('big', scope, depth)} + {self.of('int', scope, depth)})"

    def _dec(self, scope: Sequence[Col], depth: int) -> str:
        if self.choose.chance(30):
            return f"CAST({self.of('int', scope, depth)} AS DECIMAL(10, 2))"
        return self._number("dec", scope, depth)

    def _dbl(self, scope: Sequence[Col], depth: int) -> str:
        if self.choose.chance(30):
            return f"CAST({self.of(self.choose.pick(NUMBERS[:3]), scope, depth)} AS DOUBLE)"
        return self._number("dbl", scope, depth)

    def _str(self, scope: Sequence[Col], depth: int) -> str:
        one = self.of("str", scope, depth)
        form = self.choose.below(6)
        if form == 0:
            return f"UPPER({one})"
        if form == 1:
            return f"({one} || {self.of('str', scope, depth)})"
        if form == 2:
            return f"SUBSTRING({one}, 1, 1)"
        if form == 3:
            return f"CAST({self.of('int', scope, depth)} AS ⟦STRING¦VARCHAR⟧)"
        if form == 4:
            return f"REPLACE({one}, 'a', 'x')"
        return f"LOWER({one})"

    def _ts(self, scope: Sequence[Col], depth: int) -> str:
        return f"({self.of('ts', scope, depth)} {self.choose.pick('+-')} INTERVAL '3' SECOND)"

    def _bool(self, scope: Sequence[Col], depth: int) -> str:
        form = self.choose.below(10)
        if form <= 2:
            return self.comparison(scope, scope, depth)
        if form == 3:
            return f"({self.any(scope, depth).name} IS {self.choose.pick(['', 'NOT '])}NULL)"
        if form in (4, 5):
            word = self.choose.pick(["AND", "OR"])
            return f"({self.of('bool', scope, depth)} {word} {self.of('bool', scope, depth)})"
        one = self.of("bool", scope, depth)
        if form == 6:
            return f"(NOT {one})"
        if form == 7:
            return f"({one} IS {self.choose.pick(['TRUE', 'NOT TRUE', 'FALSE', 'NOT FALSE', '⟦UNKNOWN¦NULL⟧'])})"
        kind = self.choose.pick(("big", "int", "str", "dec"))
        one = self.of(kind, scope, depth)
        negated = self.choose.pick(["", "NOT "])
        if form == 8:
            return f"({one} {negated}BETWEEN {self.of(kind, scope, 0)} AND {self.of(kind, scope, 0)})"
        if kind == "str" and self.choose.chance(50):
            pattern = self.choose.pick(["a%", "%b", "_"])
            return f"({one} {negated}LIKE '{pattern}')"
        among = ", ".join(self.of(kind, [], 0) for _ in range(1 + self.choose.below(3)))
        return f"({one} {negated}IN ({among}))"

    def comparison(self, left: Sequence[Col], right: Sequence[Col], depth: int, equal: bool = False) -> str:
        """Between an expression of each side; `equal`: by = or IS NOT DISTINCT FROM."""
        kinds = {each.type for each in left} & {each.type for each in right} - {"time"}
        kind = self.choose.pick([each for each in TYPES if each in kinds] or ["big"])
        other = kind
        if kind in NUMBERS and self.choose.chance(20):
            other = self.choose.pick(NUMBERS)
        if "dbl" in (kind, other) and "dec" in (kind, other):
            other = kind
        operators = ["=", "=", "=", "IS NOT DISTINCT FROM"] if equal else ["=", "<", ">", "<=", ">=", "<>"]
        if not equal and self.choose.chance(10):
            operators = ["IS DISTINCT FROM", "IS NOT DISTINCT FROM"]
        return f"({self.of(kind, left, depth)} {self.choose.pick(operators)} {self.of(other, right, depth)})"
