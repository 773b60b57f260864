"""Readers of text lines and JSON lines: from raw lines to records, with a policy for what cannot be read."""

from __future__ import annotations

import csv
import io
from abc import abstractmethod
from collections.abc import Callable
from enum import Enum
from typing import Any

import msgspec

from headwater.common.connector import SplitReader
from headwater.common.errors import ConfigurationError, SerializationError, short_repr
from headwater.common.rejected import Rejected, why_rejected
from headwater.common.serialization import DeserializationSchema
from headwater.datastream.connectors.file_access import FileSplit
from headwater.datastream.connectors.line_stream import LinePosition, LineStream


class BadRecordPolicy(Enum):
    """What happens to a line that is not a record of its format."""

    FAIL = "fail"
    SKIP = "skip"
    REJECT = "reject"
    """It is handed out by `SplitReader.rejected()`."""

    @staticmethod
    def of(policy: BadRecordPolicy | str) -> BadRecordPolicy:
        try:
            return BadRecordPolicy(policy)
        except ValueError:
            raise ConfigurationError(
                f"bad record policy {policy!r} is unknown; expected 'fail', 'skip' or 'reject'"
            ) from None


class LineReader(SplitReader):
    """Base of readers whose position is a place between two lines."""

    gives_away = True

    def __init__(self, split: FileSplit, position: LinePosition | None, policy: BadRecordPolicy) -> None:
        self._lines = LineStream(split, position)
        self._policy = policy
        self._skipped = 0
        self._rejected: list[Rejected] = []

    def read_batch(self, max_records: int) -> list[Any] | None:
        while lines := self._lines.read_lines(max_records):
            # [] would mean "nothing now"; a batch of bad or blank lines only is no reason to stop.
            if records := self._decode(lines):
                return records
        return None

    def position(self) -> LinePosition:
        return self._lines.position

    def counters(self) -> dict[str, int]:
        """Counts since the reader was opened, for the job's counters."""
        return {"bad_records_skipped": self._skipped} if self._skipped else {}

    def rejected(self) -> list[Rejected]:
        rejected, self._rejected = self._rejected, []
        return rejected

    def close(self) -> None:
        self._lines.close()

    @abstractmethod
    def _decode(self, lines: list[bytes]) -> list[Any]:
        """The records in `lines`, the last lines read."""

    def _bad(self, line_number: int, text: Any, problem: object) -> None:
        if self._policy is BadRecordPolicy.FAIL:
            raise SerializationError(
                f"file {self._lines.place}, line {line_number}: {problem}; the text is {short_repr(text)}. Correct the "
                "file, or skip such lines with set_bad_record_policy('skip')"
            )
        if self._policy is BadRecordPolicy.SKIP:
            self._skipped += 1
            return
        path = self._lines.path
        where = f"file {self._lines.place}, line {line_number}"
        self._rejected.append(Rejected(_raw(text), str(problem), where, path, attributes={"file": path}))

    def _decode_one_by_one(self, lines: list[bytes], decode: Callable[[bytes], Any]) -> list[Any]:
        """Find the bad records, after the fast way failed."""
        records: list[Any] = []
        first = self._lines.line - len(lines) + 1
        for number, line in enumerate(lines, first):
            if not line.strip() and self._skips_blank_lines:
                continue
            try:
                records.append(decode(line))
            except (UnicodeDecodeError, msgspec.DecodeError) as error:
                self._bad(number, line.rstrip(b"\r\n"), error)
        return records

    _skips_blank_lines = False


def _raw(text: Any) -> bytes:
    """What was in the file; of a CSV record that was cut into fields, a record with these fields."""
    if isinstance(text, bytes):
        return text.rstrip(b"\r\n")
    if isinstance(text, str):
        return text.encode()
    record = io.StringIO()
    csv.writer(record, lineterminator="").writerow(text)
    return record.getvalue().encode()


class TextLineReader(LineReader):
    """Each line is a str, without its line end."""

    def __init__(
        self, split: FileSplit, position: LinePosition | None, policy: BadRecordPolicy, charset: str = "utf-8"
    ) -> None:
        super().__init__(split, position, policy)
        self._charset = charset

    def _decode(self, lines: list[bytes]) -> list[Any]:
        try:
            text = b"".join(lines).decode(self._charset)
        except UnicodeDecodeError:
            return self._decode_one_by_one(lines, self._decode_line)
        records = text.split("\n")
        if not records[-1]:
            records.pop()
        if "\r" in text:
            records = [record[:-1] if record.endswith("\r") else record for record in records]
        return records

    def _decode_line(self, line: bytes) -> str:
        return line.removesuffix(b"\n").removesuffix(b"\r").decode(self._charset)


class JsonLinesReader(LineReader):
    """Each line that is not blank is a JSON value."""

    _skips_blank_lines = True

    def __init__(self, split: FileSplit, position: LinePosition | None, policy: BadRecordPolicy) -> None:
        super().__init__(split, position, policy)
        self._decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder()

    def _decode(self, lines: list[bytes]) -> list[Any]:
        try:
            # Not decode_lines: it lets values run over line ends, and what is a record would depend on the batch.
            return list(map(self._decoder.decode, lines))
        except (msgspec.DecodeError, UnicodeDecodeError):  # blank lines are among these
            return self._decode_one_by_one(lines, self._decoder.decode)


class SchemaLineReader(LineReader):
    """Each line that is not blank is a message of a schema, and gives the records that are in it."""

    def __init__(
        self, split: FileSplit, position: LinePosition | None, policy: BadRecordPolicy, schema: DeserializationSchema
    ) -> None:
        super().__init__(split, position, policy)
        self._schema = schema

    def _decode(self, lines: list[bytes]) -> list[Any]:
        decode = self._schema.deserialize_all
        first = self._lines.line - len(lines) + 1
        records: list[Any] = []
        for number, line in enumerate(lines, first):
            message = line.removesuffix(b"\n").removesuffix(b"\r")
            if message:
                try:
                    records += decode(message)
                except Exception as error:  # schemas of users raise what they like
                    self._bad(number, message, why_rejected(error))
        return records
