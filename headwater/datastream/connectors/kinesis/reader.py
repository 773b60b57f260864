"""Reads one shard."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from headwater.common.connector import Split
from headwater.common.errors import HeadwaterError
from headwater.common.machine.descriptors import wait_any
from headwater.datastream.connectors.decoding_reader import Decode, DecodingReader, Message
from headwater.datastream.connectors.kinesis.client import EXPIRED, AwsClient, AwsError, PassingAwsError, log
from headwater.datastream.connectors.kinesis.record import KinesisRecord, message_of

MOST: Final = 10_000
"""Records in one answer: Kinesis' limit."""
QUIET_SECONDS: Final = 0.2
"""Between two questions to a shard that has nothing: Kinesis answers five in a second."""
THROTTLED_SECONDS: Final = 1.0
EMPTY_ANSWERS: Final = 5
"""Kinesis may answer with nothing although there is more: so often it is asked again at once."""
HOUR_MS: Final = 3_600_000
LEAST_KEPT_MS: Final = 24 * HOUR_MS
"""Kinesis keeps all records for so long, whatever the stream's settings are."""


def now_ms() -> int:
    return int(time.time() * 1000)


@dataclass(frozen=True)
class Shard:
    """A split."""

    stream: str
    shard_id: str
    parents: tuple[str, ...]
    start_ms: int | None
    """Skip what came before; None: read all that is there."""
    whole: bool
    """It appeared while the job ran, so none of its records may be missing."""
    bounded: bool

    @property
    def place(self) -> str:
        return f"{self.shard_id} of stream '{self.stream}'"


class Position(NamedTuple):
    """How far a shard is read."""

    sequence: str = ""
    """Of the last record that was read; "": none."""
    time_ms: int = 0
    """All that came before this moment is read: when that record came, or when the end of the shard was reached."""
    whole: bool = True
    """None of the records that follow may be missing. False for a job that begins with the oldest records there are,
    and reads them while Kinesis trims them."""


class ShardReader(DecodingReader):
    """Asks for records in turn. Ends with its shard, when that was split or merged and is read to its end."""

    gives_away = True

    def __init__(self, client: AwsClient, split: Split, position: Position | None, decode: Decode) -> None:
        super().__init__(decode, split.split_id)
        self._client = client
        self._shard: Shard = split.payload
        self._position = position or Position(whole=self._shard.whole)
        self._fetched = self._position
        """Where the next question begins: behind what is held."""
        self._held: deque[tuple[KinesisRecord, Position]] = deque()
        self._iterator: str | None = None
        self._ended = False
        self._quiet_until = 0.0
        self._kept_ms = LEAST_KEPT_MS
        self._behind_ms: int | None = None
        self._fetch_lag_ms: float | None = None

    # --- the contract

    def fetch(self, most: int) -> list[Message] | None:
        if not self._held and not self._ended and time.monotonic() >= self._quiet_until:
            self._ask(most)
        taken = [self._held.popleft() for _ in range(min(most, len(self._held)))]
        if not self._held:
            self._position = self._fetched
        elif taken:
            self._position = taken[-1][1]
        if not taken:
            return None if self._ended else []
        self._fetch_lag_ms = time.time() * 1000 - taken[-1][0].timestamp
        return [message_of(record) for record, _ in taken]

    def position(self) -> Position:
        return self._position

    def gauges(self) -> dict[str, float]:
        found: dict[str, float] = {}
        if self._behind_ms is not None:
            found |= {"millisBehindLatest": self._behind_ms, "oldestUnreadAge": self._behind_ms}
        if self._fetch_lag_ms is not None:
            found["currentFetchEventTimeLag"] = round(self._fetch_lag_ms, 3)
        return found

    def wait_readable(self, deadline: float, wake: int) -> bool:
        while not self._held and not self._ended:
            until = min(deadline, self._quiet_until)
            if wait_any([wake], until - time.monotonic()) or time.monotonic() >= deadline:
                return False
            self._ask(1000)
        return True

    # --- Kinesis

    def _ask(self, most: int) -> None:
        """Fetch what comes next, if there is something."""
        for _ in range(EMPTY_ANSWERS):
            try:
                answer = self._answer(min(most, MOST))
            except PassingAwsError as error:
                self._iterator = None
                if error.code == EXPIRED:
                    continue
                log.info("%s; it is asked again", error)
                self._quiet_until = time.monotonic() + THROTTLED_SECONDS
                return
            self._take(answer)
            at_end = not answer["Records"] and not self._behind_ms
            if self._iterator is None or (at_end and self._shard.bounded):
                self._ended = True
                return
            if self._held or at_end:
                break
        if not self._held:
            self._quiet_until = time.monotonic() + QUIET_SECONDS

    def _answer(self, most: int) -> dict[str, Any]:
        if self._iterator is None:
            self._iterator = self._new_iterator()
        return self._client.call(
            f"cannot read {self._shard.place}", "get_records", ShardIterator=self._iterator, Limit=most
        )

    def _take(self, answer: dict[str, Any]) -> None:
        records = answer["Records"]
        at, now = self._fetched, now_ms()
        if at.whole and not self._is_kept(at.time_ms, now):
            raise self._lost(f"the stream keeps them for {self._kept_ms // HOUR_MS} hours")
        self._iterator = answer.get("NextShardIterator")
        self._behind_ms = answer.get("MillisBehindLatest")
        whole = at.whole or (bool(records) and self._is_kept(_came_ms(records[0]) - HOUR_MS, now))
        for each in records:
            came_ms, sequence = _came_ms(each), each["SequenceNumber"]
            self._fetched = Position(sequence, came_ms, whole)
            shard = self._shard
            record = KinesisRecord(each["Data"], each["PartitionKey"], sequence, came_ms, shard.stream, shard.shard_id)
            self._held.append((record, self._fetched))
        at_end = not records and not self._behind_ms
        if at_end and (not at.whole or now - at.time_ms > HOUR_MS):
            self._fetched = Position(at.sequence, now, True)

    def _new_iterator(self) -> str:
        how: dict[str, Any] = {"ShardIteratorType": "TRIM_HORIZON"}
        if self._fetched.sequence:
            how = {"ShardIteratorType": "AFTER_SEQUENCE_NUMBER", "StartingSequenceNumber": self._fetched.sequence}
        elif self._shard.start_ms is not None:
            how = {"ShardIteratorType": "AT_TIMESTAMP", "Timestamp": self._shard.start_ms / 1000}
        return self._iterator_at(how)

    def _iterator_at(self, how: dict[str, Any]) -> str:
        try:
            answer = self._client.call(
                f"cannot open {self._shard.place}", "get_shard_iterator",
                StreamName=self._shard.stream, ShardId=self._shard.shard_id, **how,
            )  # fmt: skip
        except AwsError as error:
            if error.code in ("ResourceNotFoundException", "InvalidArgumentException"):
                raise self._lost(str(error)) from None
            raise
        return str(answer["ShardIterator"])

    # --- what was trimmed

    def _is_kept(self, time_ms: int, now: int) -> bool:
        """Return True if Kinesis still has all records that came after `time_ms`.

        It does not tell: asked for a trimmed record, it goes on with the oldest one there is. `time_ms` 0 is the
        start of a shard that was never asked: its parents leave the list of shards when its first records are trimmed.
        """
        stream = self._shard.stream
        if not time_ms:
            return set(self._shard.parents) <= parents_of(self._client, stream).keys()
        if now - time_ms >= self._kept_ms:
            found = self._client.call("cannot ask for the retention", "describe_stream_summary", StreamName=stream)
            self._kept_ms = found["StreamDescriptionSummary"]["RetentionPeriodHours"] * HOUR_MS
        return now - time_ms < self._kept_ms

    def _lost(self, why: str) -> HeadwaterError:
        at = f"behind record {self._fetched.sequence}" if self._fetched.sequence else "at its start"
        return HeadwaterError(
            f"{self._client.owner}: the job wants to go on {at} of {self._shard.place}, and records there may be "
            f"trimmed: {why}. Nothing was skipped: start the job anew from a position that you choose (a new "
            "checkpoint directory), and keep records for longer than the job may be down or behind"
        )


def _came_ms(record: dict[str, Any]) -> int:
    return int(record["ApproximateArrivalTimestamp"].timestamp() * 1000)


def parents_of(client: AwsClient, stream: str) -> dict[str, tuple[str, ...]]:
    """{shard: its parents} of all shards that have records, in their order."""
    found: dict[str, tuple[str, ...]] = {}
    which: dict[str, Any] = {"StreamName": stream}
    while True:
        answer = client.call(f"cannot list the shards of stream '{stream}'", "list_shards", **which)
        for shard in answer["Shards"]:
            parents = (shard.get("ParentShardId"), shard.get("AdjacentParentShardId"))
            found[shard["ShardId"]] = tuple(each for each in parents if each)
        if not answer.get("NextToken"):
            return found
        which = {"NextToken": answer["NextToken"]}
