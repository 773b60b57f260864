"""Reader of CSV, with quoted fields that may hold line feeds."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from headwater.common.errors import ConfigurationError
from headwater.datastream.connectors.file_access import FileSplit
from headwater.datastream.connectors.line_stream import LinePosition
from headwater.datastream.connectors.record_readers import BadRecordPolicy, LineReader

Rows = tuple[list[list[str]], Sequence[int]]
"""The fields of each record, and the number of each record's first line."""


class CsvReader(LineReader):
    """Each CSV record is a dict by column name, or a tuple where there are no names. Blank lines are no records.

    A block of lines is parsed to its end. Where that is inside a quoted field, more lines are taken until the record is
    whole: so the position is always between records.
    """

    def __init__(
        self,
        split: FileSplit,
        position: LinePosition | None,
        policy: BadRecordPolicy,
        *,
        charset: str,
        dialect: Mapping[str, Any],
        header: bool,
        columns: Sequence[str] | None,
        converters: Mapping[str, Callable[[str], Any]],
        comments: bool = False,
    ) -> None:
        self.gives_away = not converters  # which may return one object for many fields
        self._charset = charset
        self._dialect = dialect
        self._comments = comments
        self.header: Sequence[str] | None = None  # the first record of the file, where that is no data
        names = tuple(columns) if columns is not None else None
        start = position
        if header:
            # The header is read again on every opening: it is one line, and keeps positions small.
            super().__init__(split, None, BadRecordPolicy.FAIL)
            rows, _ = self._parse(self._lines.read_lines(1))
            while comments and not rows and (lines := self._lines.read_lines(1)):
                rows, _ = self._parse(lines)
            self.header = rows[0] if rows else None
            names = names or (tuple(rows[0]) if rows else ())
            start = position or self._lines.position
            self._lines.close()
        super().__init__(split, start, policy)
        self._names = names
        self._converters = [converters.get(name) for name in names or ()] if converters else []
        unknown = sorted(set(converters) - set(names or ()))
        if unknown and split.size > 0:
            raise ConfigurationError(f"CSV file {split.path} has no column {unknown[0]!r}; it has {list(names or ())}")

    def _decode(self, lines: list[bytes]) -> list[Any]:
        return self._to_records(*self._parse(lines))

    def _parse(self, lines: list[bytes]) -> Rows:
        first_line = self._lines.line - len(lines) + 1
        content = b"".join(lines)
        has_quotes = self._dialect["quotechar"].encode(self._charset) in content
        if not has_quotes and not (self._comments and b"#" in content):
            try:
                texts = content.removesuffix(b"\n").decode(self._charset).split("\n")
                rows = list(csv.reader(texts, strict=True, **self._dialect))
                if all(rows):
                    return rows, range(first_line, first_line + len(rows))
            except (csv.Error, UnicodeDecodeError):
                pass  # line by line, then, to find the bad one
        careful = list(self._parse_carefully(lines, first_line))
        return [row for row, _ in careful], [line_number for _, line_number in careful]

    def _parse_carefully(self, lines: list[bytes], first_line: int) -> Iterator[tuple[list[str], int]]:
        taken = 0
        text = b""
        within_record = False

        def texts() -> Iterator[str]:
            nonlocal taken, text, within_record
            while True:
                if taken == len(lines):
                    lines.extend(self._lines.read_lines(1))  # the last record is not whole yet
                if taken == len(lines):
                    return
                text = lines[taken]
                taken += 1
                if self._comments and not within_record and text.startswith(b"#"):
                    if taken == len(lines):
                        return  # not one line more than was asked for
                    continue
                within_record = True
                yield text.decode(self._charset)

        while taken < len(lines):
            rows = csv.reader(texts(), strict=True, **self._dialect)
            while taken < len(lines):
                within_record = False
                line_number = first_line + taken
                try:
                    row = next(rows, None)
                except (csv.Error, UnicodeDecodeError) as error:
                    self._bad(line_number, text, error)
                    break  # a reader that raised cannot be used again
                if row:  # a blank line is no record
                    yield row, line_number

    def _to_records(self, rows: list[list[str]], line_numbers: Sequence[int]) -> list[Any]:
        names, converters = self._names, self._converters
        if names is None:
            return list(map(tuple, rows))
        count = len(names)
        if not converters and set(map(len, rows)) == {count}:
            return [dict(zip(names, row, strict=True)) for row in rows]
        records: list[Any] = []
        for row, line_number in zip(rows, line_numbers, strict=True):
            if len(row) != count:
                self._bad(line_number, row, f"{len(row)} fields where {count} were expected: {list(names)}")
                continue
            try:
                values = [function(text) if function else text for text, function in zip(row, converters, strict=False)]
            except Exception as error:
                self._bad(line_number, row, error)
                continue
            records.append(dict(zip(names, values or row, strict=True)))
        return records
