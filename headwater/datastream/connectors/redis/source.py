"""Streams of Redis (XADD) as a source."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import msgspec

from headwater.common.connector import Source, Split, SplitReader
from headwater.common.errors import ConfigurationError, HeadwaterError
from headwater.common.machine.descriptors import wait_any
from headwater.common.rejected import Rejected
from headwater.common.secrets import without_passwords
from headwater.common.serialization import DeserializationSchema
from headwater.datastream.connectors.decoding_reader import (
    Decode,
    DecodingBuilder,
    DecodingReader,
    Message,
    OfSchema,
    whole,
)
from headwater.datastream.connectors.library import library
from headwater.datastream.connectors.redis.client import RedisClient, checked_url

LOOK_MS: Final = 20
"""How often a reader that waits for input looks whether somebody else needs it."""
NOTHING: Final = "0-0"
"""The position before all entries."""

log = logging.getLogger("headwater.redis")


class RedisStreamRecord(NamedTuple):
    """One entry of a stream."""

    stream: str
    id: str
    """Milliseconds and a number: `1700000000000-0`."""
    fields: dict[bytes, bytes]

    @property
    def timestamp(self) -> int:
        """When Redis stored it, if Redis made the id."""
        return int(self.id.split("-")[0])


@dataclass(frozen=True)
class _Settings:
    url: str = ""
    streams: tuple[str, ...] = ()
    start: str = NOTHING
    """The id of the last entry that is not read; "$": those that are there when the job starts are not."""
    bounded: bool = False
    decode: Decode = field(default=whole)


@dataclass(frozen=True)
class _Range:
    """A split: a stream, behind one entry, up to another one (None: it does not end)."""

    stream: str
    start: str
    stop: str | None


class RedisStreamsSource(Source):
    """Reads streams, each a split. The position is the id of the last entry that was read.

    It needs no consumer group: the job's checkpoints know how far it is. Entries must stay in the stream until they are
    read: of what was trimmed before, Redis says nothing.
    """

    waits = True

    def __init__(self, settings: _Settings) -> None:
        self.settings = settings
        self.bounded = settings.bounded

    @staticmethod
    def builder() -> RedisStreamsSourceBuilder:
        return RedisStreamsSourceBuilder()

    def __repr__(self) -> str:
        return f"RedisStreamsSource({', '.join(self.settings.streams)} at {without_passwords(self.settings.url)})"

    def discover_splits(self, parallelism: int, known: frozenset[str]) -> list[Split]:
        new = [stream for stream in self.settings.streams if stream not in known]
        if not new:
            return []
        client = RedisClient("RedisStreamsSource", self.settings.url)
        try:
            return [Split(stream, self._range(client, stream)) for stream in new]
        finally:
            client.close()

    def _range(self, client: RedisClient, stream: str) -> _Range:
        kind = client.call(f"cannot look for stream '{stream}'", "TYPE", stream).decode()
        if kind not in ("stream", "none") or (kind == "none" and self.bounded):
            what = "does not exist" if kind == "none" else f"is a {kind}"
            raise HeadwaterError(f"RedisStreamsSource: '{stream}' at Redis {client.shown} {what}; expected a stream")
        last = client.call(f"cannot read stream '{stream}'", "XREVRANGE", stream, "+", "-", "COUNT", 1)
        end = last[0][0].decode() if last else NOTHING
        start = end if self.settings.start == "$" else self.settings.start
        return _Range(stream, start, end if self.bounded else None)

    def open_reader(self, split: Split, position: str | None) -> SplitReader:
        return _Reader(RedisClient("RedisStreamsSource", self.settings.url), split, position, self.settings.decode)

    def read_again(self, rejected: Rejected) -> Sequence[Any]:
        fields = msgspec.msgpack.decode(rejected.raw or b"", type=dict[bytes, bytes])
        known = rejected.attributes
        return self.settings.decode(RedisStreamRecord(str(known["stream"]), str(known["id"]), fields))


class _Reader(DecodingReader):
    gives_away = True

    def __init__(self, client: RedisClient, split: Split, position: str | None, decode: Decode) -> None:
        super().__init__(decode, split.split_id)
        self._client = client
        self._range: _Range = split.payload
        self._position = self._range.start if position is None else position
        if position is not None:
            warn_if_trimmed(client, self._range.stream, position)

    @property
    def _ended(self) -> bool:
        return self._range.stop is not None and _order(self._position) >= _order(self._range.stop)

    def fetch(self, most: int) -> list[Message] | None:
        if self._ended:
            return None
        entries = self._client.call(
            f"cannot read stream '{self._range.stream}'",
            "XRANGE", self._range.stream, f"({self._position}", self._range.stop or "+", "COUNT", most,
        )  # fmt: skip
        if not entries and self._range.stop is not None:
            self._position = self._range.stop  # the last one was deleted
            return None
        if entries:
            self._position = entries[-1][0].decode()
        return [self._message(id.decode(), fields) for id, fields in entries]

    def _message(self, id: str, given: Any) -> Message:
        fields = given if isinstance(given, dict) else dict(zip(given[::2], given[1::2], strict=True))
        record = RedisStreamRecord(self._range.stream, id, fields)
        return Message(
            record,
            msgspec.msgpack.encode(fields),
            f"entry {id} of stream '{record.stream}'",
            record.timestamp,
            {"stream": record.stream, "id": id},
        )

    def position(self) -> str:
        return self._position

    def gauges(self) -> dict[str, float]:
        return {"currentOffset": float(_order(self._position)[0])}

    def wait_readable(self, deadline: float, wake: int) -> bool:
        while True:
            left_ms = int((deadline - time.monotonic()) * 1000)
            if self._ended:
                return True
            if left_ms <= 0 or wait_any([wake], 0):
                return False
            if self._client.call(
                f"cannot wait for stream '{self._range.stream}'",
                "XREAD", "COUNT", 1, "BLOCK", min(LOOK_MS, left_ms), "STREAMS", self._range.stream, self._position,
            ):  # fmt: skip
                return True

    def close(self) -> None:
        self._client.close()


def _order(id: str) -> tuple[int, int]:
    milliseconds, _, number = id.partition("-")
    return int(milliseconds), int(number or 0)


def warn_if_trimmed(client: RedisClient, stream: str, position: str) -> None:
    """Redis does not tell what it has deleted. But if the last entry that was read is gone, more may be."""
    if position == NOTHING:
        return
    first = client.call(f"cannot read stream '{stream}'", "XRANGE", stream, "-", "+", "COUNT", 1)
    if not first or _order(first[0][0].decode()) > _order(position):
        log.warning(
            "RedisStreamsSource: entry %s of stream '%s', which the job has read last, was deleted; if the stream was "
            "trimmed (MAXLEN, XTRIM), entries behind it may be lost, too; keep them longer than the job may be down",
            position,
            stream,
        )


class RedisStreamsSourceBuilder(DecodingBuilder[_Settings]):
    """Collects the settings of a `RedisStreamsSource`."""

    owner = "RedisStreamsSource"

    def __init__(self) -> None:
        super().__init__(_Settings())

    def set_url(self, url: str) -> RedisStreamsSourceBuilder:
        return self._with(url=checked_url(url, "RedisStreamsSource: set_url"))

    def set_streams(self, *streams: str) -> RedisStreamsSourceBuilder:
        if not streams or not all(isinstance(stream, str) and stream for stream in streams):
            raise ConfigurationError(f"RedisStreamsSource: set_streams: expected names of streams, found {streams!r}")
        return self._with(streams=tuple(dict.fromkeys(streams)))

    def set_start(self, start: str) -> RedisStreamsSourceBuilder:
        """Behind the entry with this id; "0" (the default): all entries; "$": those that come after the job starts."""
        if start != "$":
            try:
                _order(start)
            except (ValueError, AttributeError):
                raise ConfigurationError(
                    f"RedisStreamsSource: set_start: expected an id such as 1700000000000-0, 0 or $, found {start!r}"
                ) from None
        return self._with(start=start if start == "$" else "{}-{}".format(*_order(start)))

    def set_bounded(self) -> RedisStreamsSourceBuilder:
        """Read up to the last entry that is there when the job starts, then end."""
        return self._with(bounded=True)

    def set_value_only_deserializer(
        self, schema: DeserializationSchema, name: str = "value"
    ) -> RedisStreamsSourceBuilder:
        """What the schema makes of the field `name`."""
        return self._with(decode=OfSchema(schema, _Field(name.encode()), "RedisStreamsSource"))

    def build(self) -> RedisStreamsSource:
        library("redis", "Redis", "redis")
        checked_url(self._settings.url, "RedisStreamsSource: set_url")
        if not self._settings.streams:
            raise ConfigurationError("RedisStreamsSource: no streams; call set_streams('events')")
        return RedisStreamsSource(self._settings)


class _Field:
    def __init__(self, name: bytes) -> None:
        self._name = name

    def __call__(self, record: RedisStreamRecord) -> bytes:
        if self._name not in record.fields:
            raise HeadwaterError(f"the entry has no field {self._name.decode()!r}, only {sorted(record.fields)}")
        return record.fields[self._name]
