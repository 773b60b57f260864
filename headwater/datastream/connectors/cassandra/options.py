"""How to reach Cassandra, by PyFlink's names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from headwater.common.callables import unfit
from headwater.common.errors import ConfigurationError, ExternalSystemError, HeadwaterError
from headwater.datastream.connectors.library import library
from headwater.datastream.no_effect import warn_no_effect


class ConsistencyLevel(Enum):
    """How many replicas must have a write. The values are those of Cassandra's protocol."""

    ANY = 0
    ONE = 1
    TWO = 2
    THREE = 3
    QUORUM = 4
    ALL = 5
    LOCAL_QUORUM = 6
    EACH_QUORUM = 7
    SERIAL = 8
    LOCAL_SERIAL = 9
    LOCAL_ONE = 10


class MapperOptions:
    """Flink has these for Java's objects. Here the consistency level counts; the rest belongs into the query."""

    def __init__(self) -> None:
        self.level: ConsistencyLevel | None = None

    def consistency_level(self, cl: ConsistencyLevel) -> MapperOptions:
        if not isinstance(cl, ConsistencyLevel):
            raise ConfigurationError(f"MapperOptions: expected a ConsistencyLevel, found {cl!r}")
        self.level = cl
        return self

    def ttl(self, ttl: int) -> MapperOptions:
        return self._in_query("ttl()", "USING TTL")

    def timestamp(self, timestamp: int) -> MapperOptions:
        return self._in_query("timestamp()", "USING TIMESTAMP")

    def if_not_exists(self, enabled: bool) -> MapperOptions:
        return self._in_query("if_not_exists()", "IF NOT EXISTS")

    def tracing(self, enabled: bool) -> MapperOptions:
        warn_no_effect("MapperOptions.tracing()", "nobody would read the traces")
        return self

    def save_null_fields(self, enabled: bool) -> MapperOptions:
        warn_no_effect("MapperOptions.save_null_fields()", "call enable_ignore_null_fields() of the builder")
        return self

    def _in_query(self, option: str, words: str) -> MapperOptions:
        warn_no_effect(f"MapperOptions.{option}", f"records have no mapper; write {words} into the query")
        return self


class ClusterBuilder:
    """Makes the `cassandra.cluster.Cluster` where it is needed: with a password, TLS, a policy."""

    def __init__(self, build_cluster: Callable[[], Any]) -> None:
        if found := unfit(build_cluster, 0):
            raise ConfigurationError(f"ClusterBuilder: expected a function without arguments, found {found}")
        self.build_cluster = build_cluster


class CassandraCommitter:
    """Where Flink notes which checkpoints are written. Here that is the checkpoint storage."""

    @staticmethod
    def default_checkpoint_committer(builder: ClusterBuilder, key_space: str | None = None) -> CassandraCommitter:
        warn_no_effect("CassandraCommitter", "what is written is noted in the checkpoint storage")
        return CassandraCommitter()


class CassandraFailureHandler:
    """What happens if a write fails: the job's restart strategy decides."""

    @staticmethod
    def no_op() -> CassandraFailureHandler:
        return CassandraFailureHandler()


@dataclass(frozen=True)
class CassandraSettings:
    """What the builder collects."""

    query: str = ""
    host: str = ""
    port: int = 9042
    cluster: ClusterBuilder | None = None
    level: ConsistencyLevel | None = None
    ignore_nulls: bool = False
    concurrency: int = 100
    seconds: float = 30.0
    write_ahead_log: bool = False


class CassandraClient:
    """A session and its prepared statement. Made where it is used: a session has threads."""

    def __init__(self, settings: CassandraSettings) -> None:
        self._settings = settings
        try:
            if settings.cluster is not None:
                self._cluster = settings.cluster.build_cluster()
            else:
                cluster = library("cassandra.cluster", "Cassandra", "cassandra")
                self._cluster = cluster.Cluster([settings.host], port=settings.port)
            self._session = self._cluster.connect()
            self._statement = self._session.prepare(settings.query)
        except Exception as error:
            raise failed(f"cannot connect, or prepare '{settings.query}'", error) from error
        if settings.level is not None:
            self._statement.consistency_level = settings.level.value
        self._unset = library("cassandra.query", "Cassandra", "cassandra").UNSET_VALUE

    def bind(self, values: Any) -> Any:
        """The statement with a record's values. Raises what the driver raises about values that do not fit."""
        if self._settings.ignore_nulls and isinstance(values, dict):
            values = {name: value for name, value in values.items() if value is not None}
        elif self._settings.ignore_nulls:
            values = [self._unset if value is None else value for value in values]
        return self._statement.bind(values)

    def execute(self, statements: list[Any]) -> None:
        """Execute all, several at once. The driver stamps each when it is sent: of one row the last write wins."""
        step = self._settings.concurrency
        for start in range(0, len(statements), step):
            try:
                some = [
                    self._session.execute_async(each, timeout=self._settings.seconds)
                    for each in statements[start : start + step]
                ]
                for each in some:
                    each.result()
            except Exception as error:
                raise failed("cannot write", error) from error

    def close(self) -> None:
        self._cluster.shutdown()


def failed(what: str, error: Exception) -> HeadwaterError:
    """The error to raise: a wrong statement or password does not pass, a cluster that is away may come back."""
    cassandra = library("cassandra", "Cassandra", "cassandra")
    message = f"CassandraSink: {what}: {type(error).__name__}: {error}"
    of_hosts = getattr(error, "errors", None)  # a dict, if no host was there
    reasons = [error, *(of_hosts.values() if isinstance(of_hosts, dict) else ())]
    permanent = (cassandra.AuthenticationFailed, cassandra.Unauthorized, cassandra.InvalidRequest)
    if any(isinstance(each, permanent) or type(each).__name__ == "SyntaxException" for each in reasons):
        return HeadwaterError(message)
    return ExternalSystemError(message)
