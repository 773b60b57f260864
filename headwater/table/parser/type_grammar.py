"""The grammar of data types."""

from __future__ import annotations

import difflib

from headwater.table.parser.ast.base import DataType
from headwater.table.parser.cursor import Cursor
from headwater.table.parser.tokens import Kind

_SYNONYMS = {
    "CHARACTER": "CHAR",
    "DEC": "DECIMAL",
    "NUMERIC": "DECIMAL",
    "INTEGER": "INT",
    "DOUBLE PRECISION": "DOUBLE",
    "CHARACTER VARYING": "VARCHAR",
    "CHAR VARYING": "VARCHAR",
    "BINARY VARYING": "VARBINARY",
}

_PARAMETERS = {  # {type: how many numbers it may have}
    "CHAR": 1, "VARCHAR": 1, "STRING": 0, "BOOLEAN": 0, "BINARY": 1, "VARBINARY": 1, "BYTES": 0, "DECIMAL": 2,
    "TINYINT": 0, "SMALLINT": 0, "INT": 0, "BIGINT": 0, "FLOAT": 0, "REAL": 0, "DOUBLE": 0, "DATE": 0, "TIME": 1,
    "TIMESTAMP": 1, "TIMESTAMP_LTZ": 1, "NULL": 0, "VARIANT": 0, "BITMAP": 0,
}  # fmt: skip

_INTERVAL_PARTS = ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND")

TYPE_NAMES = (*_PARAMETERS, "INTERVAL", "ARRAY", "MAP", "MULTISET", "ROW", "RAW")


class TypeGrammar(Cursor):
    def data_type(self) -> DataType:
        """Read a type with its nullability and the suffixes ARRAY and MULTISET."""
        type_ = self._nullability(self._plain_type())
        while self.at_any("ARRAY", "MULTISET"):  # INT NOT NULL ARRAY
            word = self.advance().upper
            type_ = self._nullability(DataType(word, arguments=(type_,), span=self.since(type_.span)))
        return type_

    def _nullability(self, type_: DataType) -> DataType:
        nullable = True
        if self.at("NOT", "NULL"):
            self.accept("NOT", "NULL")
            nullable = False
        elif self.at("NULL"):
            self.advance()
        return DataType(
            type_.name,
            type_.parameters,
            type_.arguments,
            type_.field_names,
            type_.field_comments,
            nullable,
            span=self.since(type_.span),
        )

    def _plain_type(self) -> DataType:
        start = self.token.span
        if self.token.kind is not Kind.WORD:
            raise self.wanted("a type")
        name = self.token.upper
        if name in ("ARRAY", "MULTISET", "MAP"):
            self.advance()
            return DataType(name, arguments=self._angled(2 if name == "MAP" else 1), span=self.since(start))
        if name == "ROW":
            return self._row()
        if name == "INTERVAL":
            return self._interval()
        self.advance()
        if name in ("CHAR", "CHARACTER", "BINARY") and self.accept("VARYING"):
            name += " VARYING"
        elif name == "DOUBLE" and self.accept("PRECISION"):
            name += " PRECISION"
        name = _SYNONYMS.get(name, name)
        if name not in _PARAMETERS:
            near = difflib.get_close_matches(name, TYPE_NAMES, n=1, cutoff=0.6)
            cure = f"; did you mean {near[0]}?" if near else f"; the types are {', '.join(TYPE_NAMES)}"
            raise self.error(f"unknown type '{self.previous.text}'{cure}", start)
        parameters = self._numbers(name)
        if name in ("TIME", "TIMESTAMP"):
            if self.at("WITHOUT"):
                self.expect("WITHOUT", "TIME", "ZONE")
            elif self.at("WITH"):
                name = self._with_zone(name)
        return DataType(name, parameters, span=self.since(start))

    def _numbers(self, name: str) -> tuple[int, ...]:
        allowed = _PARAMETERS[name]
        if not allowed or not self.at("("):
            return ()
        numbers = self.in_parentheses(self.integer)
        if len(numbers) > allowed:
            raise self.error(f"{name} takes at most {allowed} number(s), got {len(numbers)}", self.previous.span)
        return numbers

    def _with_zone(self, name: str) -> str:
        start = self.token.span
        self.expect("WITH")
        if self.accept("LOCAL"):
            self.expect("TIME", "ZONE")
            if name == "TIMESTAMP":
                return "TIMESTAMP_LTZ"
        raise self.error(f"{name} has no variant like this: there is TIMESTAMP(p) WITH LOCAL TIME ZONE", start)

    def _angled(self, count: int) -> tuple[DataType, ...]:
        self.expect("<")
        types = [self.data_type()]
        for _ in range(count - 1):
            self.expect(",")
            types.append(self.data_type())
        self._close_angle()
        return tuple(types)

    def _close_angle(self) -> None:
        self.expect(">")

    def _row(self) -> DataType:
        start = self.advance().span
        if self.accept("<"):
            closing = ">"
        else:
            self.expect("(")
            closing = ")"
        names: list[str] = []
        types: list[DataType] = []
        comments: list[str | None] = []
        if not self.at(closing):
            for name, type_, comment in self.commas(self._row_field):
                names.append(name)
                types.append(type_)
                comments.append(comment)
        self.expect(closing)
        return DataType("ROW", (), tuple(types), tuple(names), tuple(comments), span=self.since(start))

    def _row_field(self) -> tuple[str, DataType, str | None]:
        if self.token.kind not in (Kind.WORD, Kind.QUOTED):
            raise self.wanted("the name of a field")
        name = self.advance().text
        return name, self.data_type(), self.accept_string()

    def _interval(self) -> DataType:
        start = self.advance().span
        unit = self.expect_any(*_INTERVAL_PARTS)
        parameters = self.in_parentheses(self.integer) if self.at("(") else ()
        words = unit
        if self.accept("TO"):
            words += " TO " + self.expect_any(*_INTERVAL_PARTS[_INTERVAL_PARTS.index(unit) + 1 :])
            if self.at("("):
                parameters += self.in_parentheses(self.integer)
        return DataType(f"INTERVAL {words}", parameters, span=self.since(start))
