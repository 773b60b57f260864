"""Streams of JetStream as a source."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from headwater.common.connector import Source, Split, SplitReader
from headwater.common.errors import ConfigurationError, HeadwaterError
from headwater.common.machine.descriptors import wait_any
from headwater.common.rejected import Rejected
from headwater.common.secrets import without_passwords
from headwater.datastream.connectors.decoding_reader import Decode, DecodingBuilder, DecodingReader, Message, whole
from headwater.datastream.connectors.library import library
from headwater.datastream.connectors.nats.client import NatsClient, check_library, checked_url

FIRST_SECONDS: Final = 1.0
"""How long a new reader waits for messages that the server says are there."""
LOOK_SECONDS: Final = 0.02
IDLE_SECONDS: Final = 300.0
"""So long a consumer stays at the server that nobody asks."""


class NatsRecord(NamedTuple):
    """One message of a stream."""

    stream: str
    subject: str
    sequence: int
    timestamp: int
    """When the server stored it, in milliseconds."""
    data: bytes
    headers: dict[str, str]


def _data(record: NatsRecord) -> bytes:
    return record.data


@dataclass(frozen=True)
class _Settings:
    url: str = ""
    stream: str = ""
    subjects: tuple[str, ...] = ()
    start: int = 1
    """The first sequence number; 0: what comes after the job starts."""
    bounded: bool = False
    decode: Decode = field(default=whole)


@dataclass(frozen=True)
class _Range:
    """A split: the messages of a stream with this subject (None: all), from one number to another one."""

    stream: str
    subject: str | None
    start: int
    stop: int | None
    """The first number that is not read any more; None: it does not end."""


class NatsSource(Source):
    """Reads a stream of JetStream. The position is the sequence number of the next message.

    It needs no durable consumer: the job's checkpoints know how far it is. Each of `set_subjects` is a split; a stream
    without them is one.
    """

    waits = True

    def __init__(self, settings: _Settings) -> None:
        self.settings = settings
        self.bounded = settings.bounded

    @staticmethod
    def builder() -> NatsSourceBuilder:
        return NatsSourceBuilder()

    @property
    def _owner(self) -> str:
        return f"NatsSource ({self.settings.stream})"

    def __repr__(self) -> str:
        return f"NatsSource({self.settings.stream} at {without_passwords(self.settings.url)})"

    def discover_splits(self, parallelism: int, known: frozenset[str]) -> list[Split]:
        wanted = {subject or "all": subject for subject in self.settings.subjects or (None,)}
        new = {name: subject for name, subject in wanted.items() if name not in known}
        if not new:
            return []
        client = NatsClient(self._owner, self.settings.url)
        try:
            end = client.stream(self.settings.stream).state.last_seq + 1
        finally:
            client.close()
        start = self.settings.start or end
        stop = end if self.bounded else None
        return [Split(name, _Range(self.settings.stream, subject, start, stop)) for name, subject in new.items()]

    def open_reader(self, split: Split, position: int | None) -> SplitReader:
        client = NatsClient(self._owner, self.settings.url)
        return _Reader(client, split, position, self.settings.decode)

    def read_again(self, rejected: Rejected) -> Sequence[Any]:
        known: dict[str, Any] = rejected.attributes
        headers = {name[len(_HEADER) :]: known[name] for name in known if name.startswith(_HEADER)}
        where = (known["stream"], known["subject"], known["sequence"])
        return self.settings.decode(NatsRecord(*where, rejected.timestamp_ms or 0, rejected.raw or b"", headers))


_HEADER: Final = "header."


class _Reader(DecodingReader):
    gives_away = True

    def __init__(self, client: NatsClient, split: Split, position: int | None, decode: Decode) -> None:
        super().__init__(decode, split.split_id)
        self._client = client
        self._range: _Range = split.payload
        self._position = self._range.start if position is None else position
        self._subscription: Any = None
        self._delivered = 0
        """By the consumer at the server: its messages are numbered, so that one that got lost is noticed."""
        self._pending: int | None = None
        """So many messages the server has for us; None: not known."""
        self._held: list[Any] = []
        try:
            self._check_kept(resumed=position is not None)
        except BaseException:
            client.close()
            raise

    def _check_kept(self, *, resumed: bool) -> None:
        info = self._client.stream(self._range.stream)
        compacts = (info.config.max_msgs_per_subject or -1) > 0
        if resumed and self._range.subject is None and not compacts and info.state.first_seq > self._position:
            raise HeadwaterError(
                f"{self._client.owner}: the job wants to go on at message {self._position}, but NATS "
                f"{self._client.shown} has messages {info.state.first_seq} to {info.state.last_seq} only: the "
                "others were deleted (max_age, max_msgs) before they were read. Nothing was skipped: start the job "
                "anew from where you choose (a new checkpoint directory), and keep messages for longer "
                "than the job may be down"
            )

    @property
    def _ended(self) -> bool:
        return self._range.stop is not None and self._position >= self._range.stop

    def fetch(self, most: int) -> list[Message] | None:
        if self._ended:
            return None
        arrived, self._held = self._held, []
        if not arrived:
            arrived = self._arrived(most, FIRST_SECONDS if self._pending is None or self._pending else 0)
        if len(arrived) > most:
            arrived, self._held = arrived[:most], arrived[most:]
        stop = self._range.stop
        messages = []
        for each in arrived:
            sequence = each.metadata.sequence.stream
            if stop is None or sequence < stop:
                messages.append(self._message(each))
            self._position = sequence + 1
        if not messages and stop is not None and (self._pending == 0 or self._ended):
            self._position = stop  # the last ones were deleted, or have another subject
            return None
        return messages

    def _arrived(self, most: int, seconds: float) -> list[Any]:
        """Messages in order, without gaps. Waits for `seconds`, or for the first."""
        what = f"cannot read stream '{self._range.stream}'"
        if self._subscription is None:
            self._subscription, pending = self._client.run(what, self._subscribe())
            self._delivered = 0
            self._pending = pending
        if self._pending == 0 and seconds == 0:
            seconds = LOOK_SECONDS / 4
        elif self._pending == 0:
            seconds = min(seconds, LOOK_SECONDS)
        arrived = self._client.run(what, self._fetch(min(most, 1000), seconds))
        for number, message in enumerate(arrived):
            if message.metadata.sequence.consumer != self._delivered + number + 1:
                self._forget()  # one was lost on its way: ask again from there
                arrived = arrived[:number]
                break
        if arrived:
            self._delivered += len(arrived)
            self._pending = arrived[-1].metadata.num_pending
        return arrived

    async def _subscribe(self) -> tuple[Any, int]:
        api = library("nats.js.api", "NATS", "nats")
        config = api.ConsumerConfig(
            deliver_policy=api.DeliverPolicy.BY_START_SEQUENCE,
            opt_start_seq=max(1, self._position),
            ack_policy=api.AckPolicy.NONE,
            filter_subject=self._range.subject,
            inactive_threshold=IDLE_SECONDS,
            mem_storage=True,
            num_replicas=1,
        )
        info = await self._client.js.add_consumer(self._range.stream, config)
        return await self._client.js.pull_subscribe_bind(info.name, self._range.stream), info.num_pending

    async def _fetch(self, most: int, seconds: float) -> list[Any]:
        errors = library("nats.errors", "NATS", "nats")
        js_errors = library("nats.js.errors", "NATS", "nats")
        try:
            return list(await self._subscription.fetch(most, timeout=seconds))
        except (errors.TimeoutError, TimeoutError):
            return []
        except js_errors.NotFoundError:  # the consumer is gone: nobody has asked it for long
            self._subscription = None
            return []

    def _forget(self) -> None:
        self._subscription, self._pending = None, None

    def _message(self, message: Any) -> Message:
        metadata = message.metadata
        headers = dict(message.headers or {})
        timestamp = int(metadata.timestamp.timestamp() * 1000)
        sequence = metadata.sequence.stream
        record = NatsRecord(self._range.stream, message.subject, sequence, timestamp, message.data, headers)
        return Message(
            record,
            message.data,
            f"message {sequence} of stream '{record.stream}'",
            timestamp,
            {"stream": record.stream, "subject": record.subject, "sequence": sequence}
            | {f"{_HEADER}{name}": value for name, value in headers.items()},
        )

    def position(self) -> int:
        return self._position

    def gauges(self) -> dict[str, float]:
        found: dict[str, float] = {"currentOffset": self._position}
        return found if self._pending is None else found | {"pendingRecords": self._pending + len(self._held)}

    def wait_readable(self, deadline: float, wake: int) -> bool:
        while not self._held and not self._ended:
            left = deadline - time.monotonic()
            if left <= 0 or wait_any([wake], 0):
                return False
            self._held = self._arrived(100, min(LOOK_SECONDS, left))
        return True

    def close(self) -> None:
        self._client.close()


class NatsSourceBuilder(DecodingBuilder[_Settings]):
    """Collects the settings of a `NatsSource`."""

    owner = "NatsSource"
    bytes_of = _data

    def __init__(self) -> None:
        super().__init__(_Settings())

    def set_url(self, url: str) -> NatsSourceBuilder:
        """nats://user:${env:PASSWORD}@host:4222."""
        return self._with(url=checked_url(url, "NatsSource: set_url"))

    def set_stream(self, stream: str) -> NatsSourceBuilder:
        return self._with(stream=stream)

    def set_subjects(self, *subjects: str) -> NatsSourceBuilder:
        """Only these, which must not overlap; wildcards are allowed. Each is read by itself, side by side."""
        if not subjects or not all(isinstance(subject, str) and subject for subject in subjects):
            raise ConfigurationError(f"NatsSource: set_subjects: expected subjects, found {subjects!r}")
        return self._with(subjects=tuple(dict.fromkeys(subjects)))

    def set_start(self, sequence: int) -> NatsSourceBuilder:
        """From the message with this number on (1, the default: all); 0: only what comes after the job starts."""
        if not isinstance(sequence, int) or isinstance(sequence, bool) or sequence < 0:
            raise ConfigurationError(f"NatsSource: set_start: expected a sequence number, found {sequence!r}")
        return self._with(start=sequence)

    def set_bounded(self) -> NatsSourceBuilder:
        """Read up to the last message that is there when the job starts, then end."""
        return self._with(bounded=True)

    def build(self) -> NatsSource:
        check_library()
        checked_url(self._settings.url, "NatsSource: set_url")
        if not isinstance(self._settings.stream, str) or not self._settings.stream:
            raise ConfigurationError("NatsSource: no stream; call set_stream('EVENTS')")
        return NatsSource(self._settings)
