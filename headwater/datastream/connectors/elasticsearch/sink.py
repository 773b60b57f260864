"""Documents in Elasticsearch. Each has an id that is the same whenever it is sent, so it is there once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

import msgspec

from headwater.common.connector import Committer
from headwater.common.errors import ConfigurationError, SerializationError, short_repr
from headwater.common.secrets import without_passwords
from headwater.datastream.connectors.base import DeliveryGuarantee
from headwater.datastream.connectors.elasticsearch.bulk import Action, BulkClient, BulkSettings, FlushBackoffType
from headwater.datastream.connectors.http.client import checked_url
from headwater.datastream.connectors.marked_committer import NotedCommitter
from headwater.datastream.connectors.message_sink import MessageSink
from headwater.datastream.connectors.spool import Spooled
from headwater.datastream.no_effect import warn_no_effect


class ElasticsearchEmitter:
    """Makes a document of a record: a dict, or a Row with names.

    With a `key_field` the document's id is that field's text, and a document that is there gets the record's fields.
    Without one each record is a document of its own.
    """

    def __init__(self, index: str, dynamic: bool, key_field: str | None, doc_type: str | None) -> None:
        if not isinstance(index, str) or not index:
            raise ConfigurationError(f"ElasticsearchEmitter: expected the name of an index or field, found {index!r}")
        self.index = index
        self.dynamic = dynamic
        self.key_field = key_field
        self.doc_type = doc_type

    @staticmethod
    def static_index(index: str, key_field: str | None = None, doc_type: str | None = None) -> ElasticsearchEmitter:
        """All documents go into `index`."""
        return ElasticsearchEmitter(index, False, key_field, doc_type)

    @staticmethod
    def dynamic_index(
        index_field: str, key_field: str | None = None, doc_type: str | None = None
    ) -> ElasticsearchEmitter:
        """A document goes into the index that its field `index_field` names."""
        return ElasticsearchEmitter(index_field, True, key_field, doc_type)

    def document(self, record: Any) -> tuple[str, str, bytes]:
        """(index, id or "", JSON) of a record. Raises `SerializationError` if it has none."""
        as_dict = getattr(record, "as_dict", None)
        fields = as_dict() if as_dict is not None and not isinstance(record, Mapping) else record
        if not isinstance(fields, Mapping):
            raise SerializationError(
                f"ElasticsearchSink: expected a dict or a Row with names, found {short_repr(record)}"
            )
        index = self._text(fields, self.index) if self.dynamic else self.index
        id = "" if self.key_field is None else self._text(fields, self.key_field)
        try:
            return index, id, msgspec.json.encode(fields)
        except (TypeError, ValueError, OverflowError) as error:
            raise SerializationError(f"ElasticsearchSink: {short_repr(record)} is no JSON: {error}") from None

    @staticmethod
    def _text(fields: Mapping[str, Any], name: str) -> str:
        found = fields.get(name)
        if found is None or found == "":
            raise SerializationError(f"ElasticsearchSink: record {short_repr(fields)} has no field '{name}'")
        return str(found)


class ElasticsearchSink(MessageSink):
    """Sends the documents of a checkpoint when it is durable: at least once. As each has its id, it is there once."""

    owner = "ElasticsearchSink"
    insert_only = True

    def __init__(self, emitter: ElasticsearchEmitter, settings: BulkSettings) -> None:
        self.emitter = emitter
        self.settings = settings

    def __repr__(self) -> str:
        return f"ElasticsearchSink({', '.join(map(without_passwords, self.settings.hosts))})"

    def create_committer(self) -> Committer:
        return ElasticsearchCommitter(self)

    def message(self, record: Any) -> tuple[str, str, bytes]:
        return self.emitter.document(record)


class ElasticsearchCommitter(NotedCommitter):
    """Sends the documents of an epoch, in order."""

    def __init__(self, sink: ElasticsearchSink) -> None:
        super().__init__("ElasticsearchSink")
        self._settings = sink.settings
        self._client = BulkClient(self.owner, sink.settings)

    def check(self) -> None:
        self._client.check()

    def send(self, job_id: str, epoch: int, committables: list[Spooled]) -> None:
        some: list[Action] = []
        size = 0
        for unique, (index, id, document) in self.messages(committables, tuple[str, str, bytes]):
            action = Action(index, id or unique, document, update=bool(id))
            if some and (
                len(some) == self._settings.max_actions or size + len(action.document) > self._settings.max_bytes
            ):
                self._client.send(some)
                some, size = [], 0
            some.append(action)
            size += len(action.document)
        self._client.send(some)

    def close(self) -> None:
        self._client.close()


class ElasticsearchSinkBuilderBase:
    """Collects the settings of an `ElasticsearchSink`."""

    _default_type: str | None = None

    def __init__(self) -> None:
        self._settings = BulkSettings()
        self._emitter: ElasticsearchEmitter | None = None

    def _with(self, **settings: Any) -> Self:
        self._settings = replace(self._settings, **settings)
        return self

    def set_emitter(self, emitter: ElasticsearchEmitter) -> Self:
        if not isinstance(emitter, ElasticsearchEmitter):
            raise ConfigurationError(
                "set_emitter: expected ElasticsearchEmitter.static_index(...) or dynamic_index(...), found "
                f"{short_repr(emitter)}"
            )
        self._emitter = emitter
        return self

    def set_hosts(self, hosts: str | list[str]) -> Self:
        """host:9200 or https://host:9200, one or several: if one is away, another one is asked."""
        several = [hosts] if isinstance(hosts, str) else list(hosts)
        urls = [each if "://" in str(each) else f"http://{each}" for each in several]
        return self._with(hosts=tuple(checked_url(url, "set_hosts").rstrip("/") for url in urls))

    def set_delivery_guarantee(self, delivery_guarantee: DeliveryGuarantee) -> Self:
        """AT_LEAST_ONCE, which NONE is, too: both send each document until it is there."""
        if delivery_guarantee not in (DeliveryGuarantee.AT_LEAST_ONCE, DeliveryGuarantee.NONE):
            raise ConfigurationError(
                f"ElasticsearchSink: expected AT_LEAST_ONCE, found {short_repr(delivery_guarantee)}; as each document "
                "has its id, it is there once"
            )
        return self

    def set_bulk_flush_max_actions(self, num_max_actions: int) -> Self:
        """Documents in one request (1,000); -1: no limit."""
        return self._with(max_actions=_limit(num_max_actions, "set_bulk_flush_max_actions"))

    def set_bulk_flush_max_size_mb(self, max_size_mb: int) -> Self:
        """Megabytes in one request (5); -1: no limit."""
        return self._with(max_bytes=_limit(max_size_mb, "set_bulk_flush_max_size_mb") << 20)

    def set_bulk_flush_interval(self, interval_millis: int) -> Self:
        warn_no_effect("set_bulk_flush_interval()", "documents are sent when their checkpoint is durable")
        return self

    def set_bulk_flush_backoff_strategy(
        self, flush_backoff_type: FlushBackoffType, max_retries: int, delay_millis: int
    ) -> Self:
        """How often, and after what pause, what failed is sent again. Otherwise 8 times, from 0.2 to 25 seconds."""
        if not isinstance(flush_backoff_type, FlushBackoffType) or max_retries < 0 or delay_millis < 0:
            raise ConfigurationError(
                "set_bulk_flush_backoff_strategy: expected a FlushBackoffType, a number of retries and milliseconds, "
                f"found {flush_backoff_type!r}, {max_retries!r} and {delay_millis!r}"
            )
        return self._with(backoff=flush_backoff_type, retries=max_retries, delay_ms=delay_millis)

    def set_connection_username(self, username: str) -> Self:
        return self._with(username=username)

    def set_connection_password(self, password: str) -> Self:
        """May refer to a secret: ${env:NAME}, ${file:/path}."""
        return self._with(password=password)

    def set_connection_path_prefix(self, prefix: str) -> Self:
        return self._with(path_prefix=prefix)

    def set_connection_request_timeout(self, timeout: int) -> Self:
        warn_no_effect("set_connection_request_timeout()", "there is no pool of connections to wait for")
        return self

    def set_connection_timeout(self, timeout: int) -> Self:
        warn_no_effect("set_connection_timeout()", "set_socket_timeout() covers connecting")
        return self

    def set_socket_timeout(self, timeout: int) -> Self:
        """Milliseconds to wait for an answer (30,000)."""
        return self._with(socket_seconds=_limit(timeout, "set_socket_timeout") / 1000)

    def build(self) -> ElasticsearchSink:
        if not self._settings.hosts or self._emitter is None:
            raise ConfigurationError("ElasticsearchSink: call set_hosts('localhost:9200') and set_emitter(...)")
        doc_type = None if self._default_type is None else self._emitter.doc_type or self._default_type
        return ElasticsearchSink(self._emitter, replace(self._settings, doc_type=doc_type))


class Elasticsearch6SinkBuilder(ElasticsearchSinkBuilderBase):
    """For Elasticsearch 6, in which documents have types."""

    _default_type = "_doc"


class Elasticsearch7SinkBuilder(ElasticsearchSinkBuilderBase):
    """For Elasticsearch 7 and later."""


def _limit(number: Any, what: str) -> int:
    if not isinstance(number, int) or isinstance(number, bool) or (number < 1 and number != -1):
        raise ConfigurationError(f"ElasticsearchSink: {what}: expected 1 or more, or -1, found {number!r}")
    return number if number > 0 else 1 << 30
