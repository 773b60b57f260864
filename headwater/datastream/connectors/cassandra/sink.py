"""Statements in Cassandra: one for each record."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from headwater.common.connector import Committer, Sink, SinkWriter, WriterContext
from headwater.common.errors import ConfigurationError, SerializationError, short_repr
from headwater.common.time import Duration
from headwater.common.types import Row
from headwater.datastream.connectors.cassandra.options import (
    CassandraClient,
    CassandraCommitter,
    CassandraFailureHandler,
    CassandraSettings,
    ClusterBuilder,
    MapperOptions,
)
from headwater.datastream.connectors.library import library
from headwater.datastream.connectors.marked_committer import NotedCommitter
from headwater.datastream.connectors.message_sink import DirectWriter
from headwater.datastream.connectors.spool import Spooled
from headwater.datastream.connectors.spool_committer import NothingToCommit
from headwater.datastream.connectors.spool_writer import SpoolWriter
from headwater.datastream.data_stream import DataStream
from headwater.datastream.data_stream_sink import DataStreamSink


class CassandraStatements(Sink):
    """Executes the query with the values of each record: at least once, and as upserts are idempotent, in effect once.

    With the write-ahead log, when the checkpoint is durable; otherwise as records come.
    """

    def __init__(self, settings: CassandraSettings) -> None:
        self.settings = settings

    def __repr__(self) -> str:
        return f"CassandraSink({self.settings.query!r})"

    def create_writer(self, context: WriterContext) -> SinkWriter:
        if self.settings.write_ahead_log:
            return SpoolWriter(context, _pickled)
        client = CassandraClient(self.settings)
        return DirectWriter(client, lambda values: client.execute([_bound(client, value) for value in values]))

    def create_committer(self) -> Committer:
        if self.settings.write_ahead_log:
            return _LogCommitter(self.settings)
        return NothingToCommit(lambda: CassandraClient(self.settings).close())


def _pickled(values: Sequence[Any], timestamps: Sequence[int | None] | None) -> tuple[Any, int, str]:
    return [pickle.dumps(_values(value), 5) for value in values], len(values), ""


def _values(record: Any) -> list[Any] | dict[str, Any]:
    """What the driver binds: by place, or by the names of columns."""
    if isinstance(record, dict):
        return record
    if isinstance(record, list | tuple | Row):
        return list(record)
    raise SerializationError(
        f"CassandraSink: expected a tuple, list or Row with the values of the query, or a dict by columns, found "
        f"{short_repr(record)}"
    )


def _bound(client: CassandraClient, record: Any) -> Any:
    """The statement with the record's values. What does not fit it is refused."""
    try:
        return client.bind(_values(record))
    except SerializationError:
        raise
    except Exception as error:
        raise SerializationError(
            f"CassandraSink: record {short_repr(record)} does not fit the query: {type(error).__name__}: {error}"
        ) from None


class _LogCommitter(NotedCommitter):
    """Writes an epoch when its checkpoint is durable, in order."""

    def __init__(self, settings: CassandraSettings) -> None:
        super().__init__("CassandraSink")
        self._settings = settings
        self._client: CassandraClient | None = None

    def check(self) -> None:
        self._connected()

    def _connected(self) -> CassandraClient:
        if self._client is None:
            self._client = CassandraClient(self._settings)
        return self._client

    def send(self, job_id: str, epoch: int, committables: list[Spooled]) -> None:
        client = self._connected()
        for batch in self.batches(committables):
            client.execute([client.bind(pickle.loads(values)) for values in batch])

    def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()


class CassandraSink(DataStreamSink):
    """A sink of Cassandra in a job. Made by `CassandraSink.add_sink(stream).set_query(...).set_host(...).build()`."""

    @staticmethod
    def add_sink(input: DataStream) -> CassandraSink.CassandraSinkBuilder:
        """Begin to write `input`: tuples, lists or Rows with the query's values in its order, or dicts by columns."""
        if not isinstance(input, DataStream):
            raise ConfigurationError(f"CassandraSink.add_sink: expected a DataStream, found {short_repr(input)}")
        return CassandraSink.CassandraSinkBuilder(input)

    class CassandraSinkBuilder:
        """Collects the settings. `build` adds the sink to the job."""

        def __init__(self, input: DataStream) -> None:
            self._input = input
            self._settings = CassandraSettings()

        def _with(self, **settings: Any) -> CassandraSink.CassandraSinkBuilder:
            self._settings = replace(self._settings, **settings)
            return self

        def set_query(self, query: str) -> CassandraSink.CassandraSinkBuilder:
            """INSERT INTO keyspace.table (a, b) VALUES (?, ?)."""
            return self._with(query=query)

        def set_host(self, host: str, port: int = 9042) -> CassandraSink.CassandraSinkBuilder:
            return self._with(host=host, port=port)

        def set_cluster_builder(self, builder: ClusterBuilder) -> CassandraSink.CassandraSinkBuilder:
            if not isinstance(builder, ClusterBuilder):
                raise ConfigurationError(f"CassandraSink: expected ClusterBuilder(function), found {builder!r}")
            return self._with(cluster=builder)

        def enable_write_ahead_log(
            self, committer: CassandraCommitter | None = None
        ) -> CassandraSink.CassandraSinkBuilder:
            """Write when the checkpoint is durable: nothing of an epoch that fails is ever seen."""
            return self._with(write_ahead_log=True)

        def set_mapper_options(self, options: MapperOptions) -> CassandraSink.CassandraSinkBuilder:
            return self._with(level=options.level)

        def set_failure_handler(self, failure_handler: CassandraFailureHandler) -> CassandraSink.CassandraSinkBuilder:
            if not isinstance(failure_handler, CassandraFailureHandler):
                raise ConfigurationError(
                    f"CassandraSink: expected CassandraFailureHandler.no_op(), found {failure_handler!r}"
                )
            return self

        def set_max_concurrent_requests(
            self, max_concurrent_requests: int, duration: Duration | None = None
        ) -> CassandraSink.CassandraSinkBuilder:
            """How many writes of a partition run at once, and how long each may take."""
            if not isinstance(max_concurrent_requests, int) or max_concurrent_requests < 1:
                raise ConfigurationError(
                    f"CassandraSink: set_max_concurrent_requests: expected 1 or more, found {max_concurrent_requests!r}"
                )
            seconds = self._settings.seconds if duration is None else duration.to_millis() / 1000
            return self._with(concurrency=max_concurrent_requests, seconds=seconds)

        def enable_ignore_null_fields(self) -> CassandraSink.CassandraSinkBuilder:
            """Leave columns unchanged whose value is None, instead of deleting them."""
            return self._with(ignore_nulls=True)

        def build(self) -> CassandraSink:
            library("cassandra", "Cassandra", "cassandra")
            settings = self._settings
            if not settings.query or not (settings.host or settings.cluster is not None):
                raise ConfigurationError("CassandraSink: call set_query('INSERT ...') and set_host('localhost')")
            added = self._input.sink_to(CassandraStatements(settings))
            return CassandraSink(added._transformation, added._add).name("Cassandra Sink")
