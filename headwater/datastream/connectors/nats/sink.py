"""Messages to JetStream. Exactly once: each has an id, and after a failure the stream is asked which are there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, Final

import msgspec

from headwater.common.callables import unfit
from headwater.common.connector import Committer, SinkWriter, WriterContext
from headwater.common.errors import ConfigurationError, SerializationError, short_repr
from headwater.common.row_changes import is_insert_only
from headwater.common.secrets import without_passwords
from headwater.common.serialization import SerializationSchema
from headwater.datastream.connectors.base import DeliveryGuarantee
from headwater.datastream.connectors.library import library
from headwater.datastream.connectors.marked_committer import NotedCommitter
from headwater.datastream.connectors.message_sink import DirectWriter, MessageSink, checked_guarantee, serializer_of
from headwater.datastream.connectors.nats.client import NatsClient, check_library, checked_url, once
from headwater.datastream.connectors.spool import Spooled
from headwater.datastream.connectors.spool_committer import NothingToCommit

ID: Final = "Nats-Msg-Id"
STREAM: Final = "Nats-Expected-Stream"
WINDOW: Final = 500
"""So many messages are under way at once."""


class NatsSink(MessageSink):
    """Publishes a message for each record, into one stream.

    EXACTLY_ONCE (the default): the messages of a checkpoint are published when it is durable. AT_LEAST_ONCE: as records
    come; after a failure some come again.
    """

    owner = "NatsSink"

    def __init__(
        self,
        url: str,
        stream: str,
        subject_of: Callable[[Any], str],
        value_of: Callable[[Any], bytes],
        guarantee: DeliveryGuarantee,
    ) -> None:
        self.url = url
        self.stream = stream
        self.subject_of = subject_of
        self.value_of = value_of
        self.insert_only = is_insert_only(value_of)
        self.guarantee = guarantee

    @staticmethod
    def builder() -> NatsSinkBuilder:
        return NatsSinkBuilder()

    def __repr__(self) -> str:
        return f"NatsSink({self.stream} at {without_passwords(self.url)}, {self.guarantee.name})"

    def client(self) -> NatsClient:
        return NatsClient(f"NatsSink ({self.stream})", self.url)

    def create_writer(self, context: WriterContext) -> SinkWriter:
        if self.guarantee is DeliveryGuarantee.EXACTLY_ONCE:
            return super().create_writer(context)
        client = self.client()
        return DirectWriter(client, lambda values: self.send(client, [("", each) for each in self.messages(values)]))

    def create_committer(self) -> Committer:
        if self.guarantee is DeliveryGuarantee.EXACTLY_ONCE:
            return NatsCommitter(self)
        return NothingToCommit(once(self.client, self.stream))

    def message(self, record: Any) -> tuple[str, bytes]:
        """(subject, data)."""
        subject, data = self.subject_of(record), self.value_of(record)
        if not isinstance(subject, str) or not subject or not isinstance(data, bytes):
            raise SerializationError(
                f"NatsSink: subject {short_repr(subject)} and data {short_repr(data)} of record "
                f"{short_repr(record)}; expected text and bytes"
            )
        return subject, data

    def send(self, client: NatsClient, messages: Sequence[tuple[str, tuple[str, bytes]]]) -> None:
        """Publish (id or "", (subject, data)), and wait until the server has stored them all."""
        client.run(f"cannot publish to stream '{self.stream}'", publish(client, self.stream, messages))


async def publish(client: NatsClient, stream: str, messages: Sequence[tuple[str, tuple[str, bytes]]]) -> None:
    for start in range(0, len(messages), WINDOW):
        waiting = [
            await client.js.publish_async(subject, data, headers={STREAM: stream} | ({ID: id} if id else {}))
            for id, (subject, data) in messages[start : start + WINDOW]
        ]
        for answer in waiting:
            await answer


class NatsCommitter(NotedCommitter):
    """Publishes, in order. Before it begins with an epoch it notes where the stream ends.

    If there is such a note, somebody has begun before: then all messages behind that place are looked at, and those
    whose ids are there are not sent again. So it does not matter how long ago that was. JetStream itself drops messages
    whose ids it has seen in the last two minutes (`duplicate_window`): that is against a driver that was taken for dead
    and still sends.
    """

    def __init__(self, sink: NatsSink) -> None:
        super().__init__(f"NatsSink ({sink.stream})")
        self._sink = sink
        self._client: NatsClient | None = None

    def check(self) -> None:
        self._kept_stream(self._connected())

    def _kept_stream(self, client: NatsClient) -> Any:
        """What is known of the stream. Raises if it deletes what its consumers have read: that could not be found."""
        info = client.stream(self._sink.stream)
        retention = info.config.retention
        if retention is not None and retention != library("nats.js.api", "NATS", "nats").RetentionPolicy.LIMITS:
            raise ConfigurationError(
                f"{self.owner}: stream '{self._sink.stream}' at NATS {client.shown} has the retention "
                f"'{getattr(retention, 'value', retention)}', which deletes messages once they are read, so nobody can "
                "tell after a failure which were published; expected 'limits'. Use a stream with that retention (a "
                "work queue can have it as its source), or set_delivery_guarantee(DeliveryGuarantee.AT_LEAST_ONCE)"
            )
        return info

    def _connected(self) -> NatsClient:
        if self._client is None:
            self._client = self._sink.client()
        return self._client

    def send(self, job_id: str, epoch: int, committables: list[Spooled]) -> None:
        try:
            self._send(job_id, epoch, committables)
        except BaseException:
            self.close()
            raise

    def _send(self, job_id: str, epoch: int, committables: list[Spooled]) -> None:
        client, stream = self._connected(), self._sink.stream
        begun = self.noted("begun", job_id, epoch)
        there: set[str] = set()
        if begun is None:
            end = client.stream(stream).state.last_seq
            self.note("begun", job_id, epoch, msgspec.json.encode({"behind": end}))
        else:
            self._kept_stream(client)
            behind = msgspec.json.decode(begun)["behind"]
            there = client.run(f"cannot read stream '{stream}'", self._ids(client, behind))
        missing = (each for each in self.messages(committables, tuple[str, bytes]) if each[0] not in there)
        while some := list(islice(missing, WINDOW)):
            self._sink.send(client, some)

    async def _ids(self, client: NatsClient, behind: int) -> set[str]:
        """The ids of all messages of the stream behind that one."""
        api = library("nats.js.api", "NATS", "nats")
        config = api.ConsumerConfig(
            deliver_policy=api.DeliverPolicy.BY_START_SEQUENCE,
            opt_start_seq=behind + 1,
            ack_policy=api.AckPolicy.NONE,
            headers_only=True,
            mem_storage=True,
            num_replicas=1,
        )
        info = await client.js.add_consumer(self._sink.stream, config)
        subscription = await client.js.pull_subscribe_bind(info.name, self._sink.stream)
        ids: set[str] = set()
        left = info.num_pending
        while left > 0:
            for message in await subscription.fetch(min(left, 1000), timeout=5):
                left -= 1
                ids.add((message.headers or {}).get(ID, ""))
        await client.js.delete_consumer(self._sink.stream, info.name)
        return ids

    def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()


class _Always:
    def __init__(self, subject: str) -> None:
        self._subject = subject

    def __call__(self, record: Any) -> str:
        return self._subject


class NatsSinkBuilder:
    """Collects the settings of a `NatsSink`."""

    def __init__(self) -> None:
        self._url = ""
        self._stream = ""
        self._subject_of: Callable[[Any], str] | None = None
        self._value_of: Callable[[Any], bytes] | None = None
        self._guarantee = DeliveryGuarantee.EXACTLY_ONCE

    def set_url(self, url: str) -> NatsSinkBuilder:
        """nats://user:${env:PASSWORD}@host:4222."""
        self._url = checked_url(url, "NatsSink: set_url")
        return self

    def set_stream(self, stream: str) -> NatsSinkBuilder:
        """The stream, which must exist and take the subjects."""
        self._stream = stream
        return self

    def set_subject(self, subject: str | Callable[[Any], str]) -> NatsSinkBuilder:
        """The subject of all messages, or a function from a record to its subject."""
        if not isinstance(subject, str) and (found := unfit(subject, 1)):
            raise ConfigurationError(f"NatsSink: set_subject: expected text or a function of a record, found {found}")
        self._subject_of = _Always(subject) if isinstance(subject, str) else subject
        return self

    def set_value_serializer(self, schema: SerializationSchema) -> NatsSinkBuilder:
        self._value_of = serializer_of(schema, "NatsSink")
        return self

    def set_delivery_guarantee(self, delivery_guarantee: DeliveryGuarantee) -> NatsSinkBuilder:
        self._guarantee = checked_guarantee(delivery_guarantee, "NatsSink")
        return self

    def build(self) -> NatsSink:
        check_library()
        checked_url(self._url, "NatsSink: set_url")
        if not self._stream or self._subject_of is None or self._value_of is None:
            raise ConfigurationError("NatsSink: call set_stream('OUT'), set_subject('out'), set_value_serializer(...)")
        return NatsSink(self._url, self._stream, self._subject_of, self._value_of, self._guarantee)
