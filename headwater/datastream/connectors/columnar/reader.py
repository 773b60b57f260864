"""Reader of files that store columns in groups of rows. The position is a group, and a row in it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, Final

from headwater.common.connector import Blocks, Split, SplitReader
from headwater.common.errors import SerializationError
from headwater.datastream.connectors.columnar.arrow_values import dicts_of, rows_of
from headwater.datastream.connectors.file_access import FileSplit, open_unchanged

BATCH_ROWS: Final = 8_192
SPLIT_BYTES: Final = 64 << 20
"""A larger file is read in several splits, if it has several groups."""

GroupPosition = tuple[int, int]
"""(number of a group, rows of it that were read)"""


class ColumnarFile(ABC):
    """An open file. Its methods raise OSError or ValueError (pyarrow's errors are such) for one that is damaged."""

    kind: str
    """For errors: "Parquet"."""

    @property
    @abstractmethod
    def schema(self) -> Any:
        """A pyarrow.Schema."""

    @property
    @abstractmethod
    def groups(self) -> int: ...

    @abstractmethod
    def group_bytes(self, group: int) -> int:
        """How large a group is, about."""

    @abstractmethod
    def batches(self, group: int, columns: list[str] | None) -> Iterator[Any]:
        """The rows of a group as record batches of `columns` (None: all), none with more than BATCH_ROWS rows.

        Where they are cut depends on the file only.
        """

    def position_of_row(self, row: int) -> GroupPosition:
        """Where the row `row` of the file is: positions of older checkpoints are numbers of rows."""
        raise ValueError(f"position {row} is not one of a {self.kind} file")


@dataclass(frozen=True)
class RecordForm:
    """What records are made of the rows: dicts, Rows, or whole batches. Pickled to the tasks."""

    columns: tuple[str, ...] | None = None
    """Those to read; None: all of the file, or of `schema`."""
    schema: Any = None
    """The pyarrow.Schema that rows are to have, whatever version of it a file has; None: that of the file."""
    rows: bool = False
    """True: Rows; False: dicts."""
    batches: bool = False
    """True: each record is a pyarrow.RecordBatch."""
    case_sensitive: bool = True
    repeated: tuple[tuple[str, Any], ...] = ()
    """Columns that a file has not: names, and the value (a pyarrow.Scalar) of all its rows. For batches."""

    def bind(self, found: Any) -> tuple[list[str] | None, Callable[[Any], Any]]:
        """Return the columns to read of a file with the schema `found`, and what adapts its batches.

        Raises ValueError if the file has not what is asked for.
        """
        if self.schema is not None:
            return self._adapted(found)
        if self.columns is None:
            return None, lambda batch: batch
        missing = [name for name in self.columns if name not in found.names]
        if missing:
            raise ValueError(f"no column {missing[0]!r}; it has {found.names}")
        return list(self.columns), lambda batch: batch

    def records(self, batch: Any) -> list[Any]:
        if self.batches:
            return [self._extended(batch) if self.repeated else batch]
        return rows_of(batch) if self.rows else dicts_of(batch)

    def _extended(self, batch: Any) -> Any:
        import pyarrow

        names = [*batch.schema.names, *(name for name, _ in self.repeated)]
        more = [pyarrow.repeat(value, batch.num_rows) for _, value in self.repeated]
        return pyarrow.RecordBatch.from_arrays([*batch.columns, *more], names=names)

    def _adapted(self, found: Any) -> tuple[list[str] | None, Callable[[Any], Any]]:
        import pyarrow

        known = {name if self.case_sensitive else name.lower(): name for name in found.names}
        names = [known.get(field.name if self.case_sensitive else field.name.lower()) for field in self.schema]
        schema = self.schema

        def adapt(batch: Any) -> Any:
            columns = []
            for field, name in zip(schema, names, strict=True):
                if name is None:  # the file is older than the field
                    columns.append(pyarrow.nulls(batch.num_rows, field.type))
                    continue
                column = batch.column(name)
                try:
                    columns.append(column if column.type == field.type else column.cast(field.type))
                except (pyarrow.ArrowException, ValueError) as error:
                    raise ValueError(f"column {name!r} is {column.type}, not {field.type}: {error}") from error
            return pyarrow.RecordBatch.from_arrays(columns, schema=schema)

        return [name for name in names if name is not None] or None, adapt


class ColumnarReader(SplitReader):
    """Reads the groups of one split, from any row of them on."""

    gives_away = True

    def __init__(
        self,
        split: FileSplit,
        position: GroupPosition | int | None,
        open_file: Callable[[BinaryIO], ColumnarFile],
        kind: str,
        form: RecordForm,
    ) -> None:
        self._path = split.path
        self._kind = kind
        self._form = form
        self._handle = open_unchanged(split, position)
        try:
            self._file = open_file(self._handle)
            first, self._end = split.groups or (0, self._file.groups)
            self._group, self._row = self._start(position, first)
            columns, self._adapt = form.bind(self._file.schema)
            self._batches = self._read_from(self._group, self._row, columns)
        except (OSError, ValueError) as error:
            self._handle.close()
            raise unreadable(split.path, kind, error) from error
        self._batch: Any = None
        self._records: list[Any] = []
        self._next = 0

    def read_batch(self, max_records: int) -> list[Any] | None:
        if self._next >= len(self._records):
            try:
                found = next(self._batches, None)
            except (OSError, ValueError) as error:
                raise SerializationError(
                    f"file {self._path}, {self._kind} group {self._group}, after row {self._row} of it: {error}"
                ) from error
            if found is None:
                self._group, self._row = self._end, 0
                return None
            self._group, self._row, self._batch = found
            self._records, self._next = self._form.records(self._batch), 0
        records = self._records[self._next : self._next + max_records]
        self._next += len(records)
        rows = self._batch.num_rows if self._form.batches else len(records)
        self._row += rows
        return Blocks(records, rows) if self._form.batches else records

    def position(self) -> GroupPosition:
        return self._group, self._row

    def close(self) -> None:
        self._handle.close()

    def _start(self, position: GroupPosition | int | None, first: int) -> GroupPosition:
        if position is None:
            return first, 0
        return self._file.position_of_row(position) if isinstance(position, int) else position

    def _read_from(self, group: int, row: int, columns: list[str] | None) -> Iterator[tuple[int, int, Any]]:
        """Yield (group, rows of it before, batch)."""
        for current in range(group, self._end):
            before = 0
            for batch in self._file.batches(current, columns):
                skip = max(0, min(row - before, batch.num_rows))
                if skip < batch.num_rows:
                    yield current, before + skip, self._adapt(batch.slice(skip) if skip else batch)
                before += batch.num_rows
            if row > before:
                raise ValueError(f"it has {before} rows, but {row} of them were read before")
            row = 0


def splits_of(
    file: FileSplit, open_file: Callable[[BinaryIO], ColumnarFile], kind: str, split_bytes: int
) -> list[Split]:
    """The splits of a file: itself, or runs of its groups of about `split_bytes` each."""
    if file.size <= split_bytes:
        return [Split(file.path, file)]
    try:
        with open_unchanged(file, None) as handle:
            opened = open_file(handle)
            sizes = [opened.group_bytes(group) for group in range(opened.groups)]
    except (OSError, ValueError) as error:
        raise unreadable(file.path, kind, error) from error
    runs = _runs(sizes, split_bytes)
    if len(runs) < 2:
        return [Split(file.path, file)]
    return [Split(piece_id(file.path, run[0]), FileSplit(file.path, file.size, run)) for run in runs]


def piece_id(path: str, first: int, unit: str = "group") -> str:
    """The id of the split of a file that begins with this group or byte."""
    return f"{path} [from {unit} {first}]"


def unreadable(path: str, kind: str, error: Exception) -> SerializationError:
    return SerializationError(f"file {path} cannot be read as {kind}: {error}")


def _runs(sizes: Sequence[int], target: int) -> list[tuple[int, int]]:
    """Cut groups of these sizes into runs (first, end), each as large as `target` if the last is left out."""
    runs: list[tuple[int, int]] = []
    first = size = 0
    for group, group_size in enumerate(sizes):
        size += group_size
        if size >= target:
            runs.append((first, group + 1))
            first, size = group + 1, 0
    if first < len(sizes):
        runs.append((first, len(sizes)))
    return runs
