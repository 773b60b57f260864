"""Reads one partition."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from headwater.common.connector import Split, SplitReader, TimedBatch
from headwater.common.errors import HeadwaterError
from headwater.common.machine.descriptors import wait_any
from headwater.common.rejected import Rejected, why_rejected
from headwater.datastream.connectors.kafka.client import CONNECT_SECONDS, KafkaClient, library, log, permanent_codes
from headwater.datastream.connectors.kafka.record import KafkaRecord, KafkaRecordDeserializationSchema, ValueOnly

FIRST_SECONDS = 1.0
"""How long a new reader waits for its first answer from Kafka: a job of short epochs would never see a record."""
NEXT_SECONDS = 0.05
"""How long a reader waits that knows of more records than have arrived."""
LOOK_SECONDS = 0.01
"""How often a reader that waits for input looks whether somebody else needs it."""


@dataclass(frozen=True)
class PartitionRange:
    """A split: a partition, from its first offset to its last one (exclusive; None: it does not end)."""

    topic: str
    partition: int
    start: int
    stop: int | None


class KafkaReader(SplitReader):
    """The position is the offset of the next record. Made where it is used: its client has threads."""

    def __init__(
        self, client: KafkaClient, split: Split, position: int | None, schema: KafkaRecordDeserializationSchema
    ) -> None:
        self._range: PartitionRange = split.payload
        self._split_id = split.split_id
        self._position: int = self._range.start if position is None else position
        self._client = client
        self._consumer = client.client
        self._schema = schema
        self.gives_away = type(getattr(schema, "schema", schema)).__module__.startswith("headwater.")
        self._kafka = library()
        self._at_end = False
        """Kafka has said that there is no more for now."""
        self._heard = False
        """Kafka has answered at all."""
        self._held: list[Any] = []
        """Messages that came while the reader waited for input."""
        self._rejected: list[Rejected] = []
        self._empty = 0
        self._last_timestamp: int | None = None
        self._fetch_lag_ms: float | None = None
        if not self._ended:
            where = self._kafka.TopicPartition(self._range.topic, self._range.partition, self._position)
            self._consumer.assign([where])

    @property
    def _ended(self) -> bool:
        return self._range.stop is not None and self._position >= self._range.stop

    def read_batch(self, max_records: int) -> list[Any] | None:
        if self._ended:
            return None
        messages = self._accepted(self._arrived(max_records))
        if not messages:
            return None if self._ended else []
        self._position = max(self._position, messages[-1].offset() + 1)
        return self._decoded(messages)

    def _arrived(self, most: int) -> list[Any]:
        """What is there, with errors and ends among it. Waits only for what must be on its way."""
        arrived, self._held = self._held, []
        arrived += self._consumer.consume(most, 0)
        if not arrived and not self._at_end:
            message = self._consumer.poll(NEXT_SECONDS if self._heard else FIRST_SECONDS)
            self._heard = True  # or it is down: then the next epochs do not wait as long
            if message is not None:
                arrived = [message, *self._consumer.consume(most, 0)]
        if len(arrived) > most:
            arrived, self._held = arrived[:most], arrived[most:]
        return arrived

    def _accepted(self, arrived: list[Any]) -> list[Any]:
        """Return the messages in it, up to the end of the split. Raises what cannot be read over."""
        if not arrived:
            return arrived
        self._at_end = False
        if any(message.error() is not None for message in arrived):
            arrived = [message for message in arrived if not self._is_event(message)]
        stop = self._range.stop
        if arrived and stop is not None and arrived[-1].offset() >= stop:
            arrived = [message for message in arrived if message.offset() < stop]
            self._position = stop
        return arrived

    def _is_event(self, message: Any) -> bool:
        """Return False for a record. Note an end; raise an error that does not pass."""
        error = message.error()
        if error is None:
            self._at_end = False
            return False
        code = error.code()
        if code == self._kafka.KafkaError._PARTITION_EOF:
            # Behind the last record there may be marks of transactions, and records of aborted ones.
            self._at_end = True
            self._position = max(self._position, message.offset())
        elif code in (self._kafka.KafkaError._AUTO_OFFSET_RESET, self._kafka.KafkaError.OFFSET_OUT_OF_RANGE):
            raise self._lost_offset(error)
        elif code in permanent_codes():
            raise HeadwaterError(
                f"{self._client.owner}: {self._where()} at Kafka {self._client.servers}: {error.str()}"
            )
        else:
            log.warning("%s: %s: %s; reading goes on when it passes", self._client.owner, self._where(), error.str())
        return True

    def _where(self) -> str:
        return f"partition {self._range.partition} of topic '{self._range.topic}'"

    def _lost_offset(self, error: Any) -> HeadwaterError:
        has = "what Kafka has is not known"
        try:
            where = self._kafka.TopicPartition(self._range.topic, self._range.partition)
            low, high = self._consumer.get_watermark_offsets(where, timeout=CONNECT_SECONDS)
            has = f"Kafka has offsets {low} to {high - 1}" if high > low else f"Kafka has no record, the next is {high}"
        except Exception:
            log.info("cannot ask for the offsets of %s", self._where())
        return HeadwaterError(
            f"{self._client.owner}: the job wants to go on at offset {self._position} of {self._where()}, which is "
            f"not there any more: {has} ({error.str()}). Records were deleted before they were read, or the topic was "
            "made anew. Nothing was skipped: start the job anew from offsets that you choose (a new checkpoint "
            "directory), and keep records for longer than the job may be down"
        )

    # --- records

    def _decoded(self, messages: list[Any]) -> TimedBatch:
        schema = self._schema
        last_kind, last_timestamp = messages[-1].timestamp()
        if last_kind:
            self._last_timestamp = last_timestamp
            self._fetch_lag_ms = time.time() * 1000 - last_timestamp
        if isinstance(schema, ValueOnly) and schema.deserialize_all is None:
            try:
                decode = schema.schema.deserialize
                values = [decode(message.value()) for message in messages]
            except Exception as error:
                why_rejected(error)
                return self._one_by_one(messages)
            if not any(value is None for value in values):
                stamps = [message.timestamp() for message in messages]
                return TimedBatch(values, [stamp if kind else None for kind, stamp in stamps])
        return self._one_by_one(messages)

    def _one_by_one(self, messages: list[Any]) -> TimedBatch:
        values: list[Any] = []
        timestamps: list[int | None] = []
        for message in messages:
            record = KafkaRecord.of(message)
            try:
                made = self._schema.deserialize(record)
            except Exception as error:
                self._reject(record, error)
                continue
            self._empty += not made
            values += made
            timestamps += [record.timestamp] * len(made)
        return TimedBatch(values, timestamps)

    def _reject(self, record: KafkaRecord, error: Exception) -> None:
        self._rejected.append(record.rejected(why_rejected(error), self._split_id))

    def rejected(self) -> list[Rejected]:
        rejected, self._rejected = self._rejected, []
        return rejected

    # --- the rest of the contract

    def position(self) -> int:
        return self._position

    def counters(self) -> dict[str, int]:
        return {"kafkaMessagesWithoutRecord": self._empty}

    def gauges(self) -> dict[str, float]:
        found: dict[str, float] = {"currentOffset": self._position}
        if self._ended:
            return found
        where = self._kafka.TopicPartition(self._range.topic, self._range.partition)
        _, end = self._consumer.get_watermark_offsets(where, cached=True)
        if end >= 0:
            found["endOffset"] = end
            pending = 0 if self._at_end else max(0, end - self._position)
            found["pendingRecords"] = pending
            if self._last_timestamp is not None:  # what comes next is not older
                found["oldestUnreadAge"] = max(0.0, time.time() * 1000 - self._last_timestamp) if pending else 0.0
        if self._fetch_lag_ms is not None:
            found["currentFetchEventTimeLag"] = round(self._fetch_lag_ms, 3)
        return found

    def wait_readable(self, deadline: float, wake: int) -> bool:
        while True:
            if self._held or self._ended:
                return True
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            message = self._consumer.poll(min(LOOK_SECONDS, left))
            if message is not None:
                error = message.error()
                if error is not None and error.code() == self._kafka.KafkaError._PARTITION_EOF:
                    self._is_event(message)
                    continue
                self._held.append(message)
                return True
            if wait_any([wake], 0):
                return False

    def close(self) -> None:
        self._consumer.close()
