"""Output as DataFrames of Spark: to whatever Spark can write.

Writers put records into Parquet files of the checkpoint storage. When their checkpoint is durable, the driver gives
them to a function, as one DataFrame. A note beside the files says that the function has returned: only then may they
be missing.
"""

from __future__ import annotations

import io
import os
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from headwater.checkpoint.paths import validate_name
from headwater.common.connector import Committer, CommitterContext, OutputFiles, Sink, SinkWriter, WriterContext
from headwater.common.errors import CheckpointError, ConfigurationError, short_repr
from headwater.datastream.connectors.bulk_writers import rows_in_order
from headwater.datastream.connectors.columnar.arrow_types import arrow_schema
from headwater.datastream.connectors.columnar.arrow_values import to_table

__all__ = ["SparkSink"]

_DONE: Final = "done-"

BatchFunction = Callable[[Any, int], object]
"""Called with a DataFrame and the epoch. It must have written the DataFrame when it returns."""


@dataclass(frozen=True)
class SparkPart:
    """What one partition wrote in one epoch: a Parquet file, or its content where there is no checkpoint storage."""

    epoch: int
    name: str
    size: int
    content: bytes = b""


class SparkSink(Sink):
    """Calls `write(df, epoch)` in the driver with the output of each checkpoint, as `foreachBatch` does.

    The function is called again, with the same epoch and the same rows, after a failure that came before it was noted
    that it had returned. So the target sees each row once if a second write of the same epoch changes nothing: a
    directory or partition per epoch that is overwritten, a MERGE by key, Delta with `txnAppId` and `txnVersion`.
    Epochs only grow. `row_type` says what fields the records have: `Types.ROW_NAMED(...)`, or a pyarrow.Schema.
    """

    insert_only = True

    def __init__(self, write: BatchFunction, row_type: Any) -> None:
        if not callable(write):
            raise ConfigurationError(
                f"SparkSink got {short_repr(write)}; expected a function of a DataFrame and an epoch, for example "
                "lambda df, epoch: df.write.mode('overwrite').parquet(f'/out/epoch={epoch}')"
            )
        self._write = write
        self._schema = arrow_schema(row_type)

    def create_writer(self, context: WriterContext) -> SinkWriter:
        return _PartWriter(self._schema, context)

    def create_committer(self) -> Committer:
        return _FunctionCommitter(self._write)


class _PartWriter(SinkWriter):
    def __init__(self, schema: Any, context: WriterContext) -> None:
        self._schema = schema
        self._context = context
        self._tables: list[Any] = []

    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        self._tables.append(to_table(rows_in_order(values, tuple(self._schema.names)), self._schema, "SparkSink"))

    def prepare_commit(self) -> list[Any]:
        import pyarrow
        import pyarrow.parquet as parquet

        if not self._tables:
            return []
        content = io.BytesIO()
        parquet.write_table(pyarrow.concat_tables(self._tables), content, compression="zstd", write_page_checksum=True)
        self._tables = []
        context, size = self._context, content.tell()
        if context.files is None:
            return [SparkPart(context.epoch, "", size, content.getvalue())]
        unique = uuid.uuid4().hex[:12]
        name = validate_name(f"{context.partition}-{context.attempt_id}-{unique}.parquet", "output file name", 150)
        with context.files.write(name) as file:
            file.write(content.getbuffer())
        return [SparkPart(context.epoch, name, size)]

    def abort(self) -> None:
        self._tables = []


class _FunctionCommitter(Committer):
    def __init__(self, write: BatchFunction) -> None:
        self._write = write
        self._context = CommitterContext("job", "sink", "sink")

    def open(self, context: CommitterContext) -> None:
        if context.spark_session is None:
            raise ConfigurationError("SparkSink needs Spark, and this job runs without; use another headwater.master")
        self._context = context

    def commit(self, committables: list[Any]) -> None:
        if not committables:
            return
        epoch = max(part.epoch for part in committables)
        files = self._context.files
        note = f"{_DONE}{epoch}"
        notes = [] if files is None else [name for name in files.names() if name.startswith(_DONE)]
        if note not in notes:
            self._write(self._dataframe(committables), epoch)
            if files is not None:
                with files.write(note):
                    pass
        if files is not None:
            for name in [*(part.name for part in committables), *(each for each in notes if each != note)]:
                files.delete(name)

    def _dataframe(self, parts: Sequence[SparkPart]) -> Any:
        import pyarrow
        import pyarrow.parquet as parquet

        assert self._context.spark_session is not None
        session = self._context.spark_session()
        paths: list[str | None] = []
        for part in parts:
            paths.append(self._check(part))
        if None not in paths:
            return session.read.parquet(*paths)  # each task reads its own files
        tables = []
        for part in parts:
            with self._open(part) as content:
                tables.append(parquet.read_table(content))
        return session.createDataFrame(pyarrow.concat_tables(tables))

    def _open(self, part: SparkPart) -> Any:
        files: OutputFiles | None = self._context.files
        return io.BytesIO(part.content) if files is None or not part.name else files.open(part.name)

    def _check(self, part: SparkPart) -> str | None:
        """Return where a part is, if it is a local file. CheckpointError if it is gone or not what was written."""
        try:
            with self._open(part) as content:
                size = content.seek(0, os.SEEK_END)
                path = getattr(content, "name", None)
        except FileNotFoundError:
            size, path = -1, None
        if size != part.size:
            raise CheckpointError(
                f"SparkSink: output file {part.name} of epoch {part.epoch} is gone or was changed in the checkpoint "
                "storage, before it was written to its target; restore it from a copy"
            )
        return path if isinstance(path, str) and os.path.isabs(path) else None

    def find_leftovers(self, job_id: str) -> list[Any]:
        files = self._context.files
        return [] if files is None else [name for name in files.names() if not name.startswith(_DONE)]

    def delete_leftovers(self, leftovers: list[Any]) -> None:
        assert self._context.files is not None
        for name in leftovers:
            self._context.files.delete(name)
