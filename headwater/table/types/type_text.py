"""Read a type from its text: `DECIMAL(10, 2)`, `ROW<a INT, b ARRAY<STRING NOT NULL>>`. `LogicalType.sql` writes it.

The SQL parser reads types by itself, with positions; this serves catalogs, recordings and `DataTypes.of`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from headwater.table.types import logical as t
from headwater.table.types.logical import LogicalType

_TOKEN = re.compile(r"\s*(`(?:[^`]|``)*`|'(?:[^']|'')*'|\w+|[<>(),])")

_WITHOUT_PARAMETERS: dict[str, LogicalType] = {
    "STRING": t.STRING,
    "BYTES": t.BYTES,
    "BOOLEAN": t.BOOLEAN,
    "TINYINT": t.TINYINT,
    "SMALLINT": t.SMALLINT,
    "INT": t.INT,
    "INTEGER": t.INT,
    "BIGINT": t.BIGINT,
    "FLOAT": t.FLOAT,
    "DATE": t.DATE,
    "NULL": t.NULL,
}

_Sized = type[t.CharType] | type[t.VarCharType] | type[t.BinaryType] | type[t.VarBinaryType]

_WITH_LENGTH: dict[str, _Sized] = {
    "CHAR": t.CharType,
    "VARCHAR": t.VarCharType,
    "BINARY": t.BinaryType,
    "VARBINARY": t.VarBinaryType,
}


def parse_type(text: str) -> LogicalType:
    """Return the type that `text` means. A ValueError says what is wrong and at which character."""
    reader = _Reader(text, _tokens(text))
    found = reader.type()
    if reader.peek():
        raise reader.error("the end")
    return found


@dataclass(frozen=True)
class _Token:
    text: str
    start: int


def _tokens(text: str) -> list[_Token]:
    found, at = [], 0
    text = text.rstrip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ValueError(f"type '{text}': unexpected character {text[at]!r} at {at + 1}")
        found.append(_Token(match.group(1), match.start(1)))
        at = match.end()
    return found


class _Reader:
    def __init__(self, text: str, tokens: list[_Token]) -> None:
        self._text = text
        self._tokens = tokens
        self._at = 0

    def peek(self) -> str:
        """The next word in capitals (quoted ones as they are), or nothing at the end."""
        if self._at == len(self._tokens):
            return ""
        text = self._tokens[self._at].text
        return text if text[0] in "`'" else text.upper()

    def next(self) -> str:
        word = self.peek()
        self._at += 1
        return word

    def accept(self, *words: str) -> bool:
        """Take the words if they come next."""
        before = self._at
        for word in words:
            if self.peek() != word:
                self._at = before
                return False
            self._at += 1
        return True

    def expect(self, word: str) -> None:
        if not self.accept(word):
            raise self.error(f"'{word}'")

    def error(self, expected: str) -> ValueError:
        if self._at < len(self._tokens):
            token = self._tokens[self._at]
            return ValueError(f"type '{self._text}': found '{token.text}' at {token.start + 1}, expected {expected}")
        return ValueError(f"type '{self._text}' ends too early, expected {expected}")

    def number(self) -> int:
        if not self.peek().isdigit():
            raise self.error("a number")
        return int(self.next())

    def optional_number(self) -> int | None:
        if not self.accept("("):
            return None
        value = self.number()
        self.expect(")")
        return value

    def type(self) -> LogicalType:
        found = self.plain()
        while True:
            if self.accept("NOT", "NULL"):
                found = found.not_null()
            elif self.accept("NULL"):
                found = found.with_nullable(True)
            elif self.accept("ARRAY"):
                found = t.ArrayType(element=found)
            elif self.accept("MULTISET"):
                found = t.MultisetType(element=found)
            else:
                return found

    def plain(self) -> LogicalType:
        start = self._at
        word = self.next()
        if word in _WITHOUT_PARAMETERS:
            return _WITHOUT_PARAMETERS[word]
        if word in _WITH_LENGTH:
            return self.with_length(_WITH_LENGTH[word])
        if word == "DOUBLE":
            self.accept("PRECISION")
            return t.DOUBLE
        if word in ("DECIMAL", "DEC", "NUMERIC"):
            return self.decimal()
        if word == "TIME":
            precision = self.optional_number()
            self.accept("WITHOUT", "TIME", "ZONE")
            return t.TimeType(precision=precision or 0)
        if word in ("TIMESTAMP", "TIMESTAMP_LTZ"):
            return self.timestamp(word == "TIMESTAMP_LTZ")
        if word == "INTERVAL":
            return self.interval()
        if word in ("ARRAY", "MULTISET"):
            self.expect("<")
            element = self.type()
            self.expect(">")
            return t.ArrayType(element=element) if word == "ARRAY" else t.MultisetType(element=element)
        if word == "MAP":
            self.expect("<")
            key = self.type()
            self.expect(",")
            value = self.type()
            self.expect(">")
            return t.MapType(key=key, value=value)
        if word == "ROW":
            return self.row()
        self._at = start
        raise self.error("a type")

    def with_length(self, kind: _Sized) -> LogicalType:
        length = self.optional_number()
        return kind(length=1 if length is None else length)

    def decimal(self) -> LogicalType:
        precision, scale = 10, 0
        if self.accept("("):
            precision = self.number()
            if self.accept(","):
                scale = self.number()
            self.expect(")")
        return t.DecimalType(precision=precision, scale=scale)

    def timestamp(self, local: bool) -> LogicalType:
        precision = self.optional_number()
        digits = 6 if precision is None else precision
        if not local and self.accept("WITH", "LOCAL", "TIME", "ZONE"):
            local = True
        elif not local:
            self.accept("WITHOUT", "TIME", "ZONE")
        return t.LocalZonedTimestampType(precision=digits) if local else t.TimestampType(precision=digits)

    def interval(self) -> LogicalType:
        unit = self.interval_unit()
        months = unit.startswith(("YEAR", "MONTH"))
        if self.accept("TO"):
            unit = f"{unit} TO {self.interval_unit()}"
        return t.YearMonthIntervalType(resolution=unit) if months else t.DayTimeIntervalType(resolution=unit)

    def interval_unit(self) -> str:
        if self.peek() not in ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND"):
            raise self.error("YEAR, MONTH, DAY, HOUR, MINUTE or SECOND")
        unit = self.next()
        digits = self.optional_number()
        return unit if digits is None else f"{unit}({digits})"

    def row(self) -> LogicalType:
        close = {"<": ">", "(": ")"}.get(self.next())
        if close is None:
            self._at -= 1
            raise self.error("'<'")
        fields: list[t.RowField] = []
        while not self.accept(close):
            if fields:
                self.expect(",")
            fields.append(self.row_field())
        return t.RowType(fields=tuple(fields))

    def row_field(self) -> t.RowField:
        if self._at == len(self._tokens) or not re.match(r"[`\w]", self.peek()):
            raise self.error("the name of a field")
        name = self._tokens[self._at].text
        self._at += 1
        if name[0] == "`":
            name = name[1:-1].replace("``", "`")
        kind = self.type()
        comment = self.next()[1:-1].replace("''", "'") if self.peek().startswith("'") else None
        return t.RowField(name, kind, comment)
