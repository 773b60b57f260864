"""What the test broker knows: the logs of partitions, transactions, and the offsets of groups. No network."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum

from headwater.testing.kafka.wire import TRANSACTIONAL, Batch, control_batch


class Error(IntEnum):
    """Kafka's error codes that the broker answers with."""

    NONE = 0
    OFFSET_OUT_OF_RANGE = 1
    UNKNOWN_TOPIC_OR_PARTITION = 3
    MESSAGE_TOO_LARGE = 10
    TOPIC_AUTHORIZATION_FAILED = 29
    UNSUPPORTED_VERSION = 35
    TOPIC_ALREADY_EXISTS = 36
    OUT_OF_ORDER_SEQUENCE = 45
    DUPLICATE_SEQUENCE = 46
    INVALID_PRODUCER_EPOCH = 47
    INVALID_TXN_STATE = 48
    INVALID_PRODUCER_ID_MAPPING = 49


@dataclass(frozen=True)
class _Stored:
    first: int
    last: int
    data: bytes
    batch: Batch


class PartitionLog:
    """The records of one partition."""

    def __init__(self) -> None:
        self._batches: list[_Stored] = []
        self._lasts: list[int] = []
        self.start = 0
        self.end = 0
        self.open: dict[int, int] = {}
        """{producer with an open transaction: the first offset of it}"""
        self.aborted: list[tuple[int, int, int]] = []  # (producer id, first offset, offset of the end)
        self._sequences: dict[int, tuple[int, int, int, int]] = {}  # {producer: (epoch, sequence, next, base offset)}

    @property
    def stable_end(self) -> int:
        """Readers of committed records get no further than this."""
        return min(self.open.values(), default=self.end)

    def append(self, data: bytes) -> int:
        """Append a batch and return the offset of its first record."""
        batch, first = Batch(data), self.end
        self.end = first + batch.last_delta + 1
        self._batches.append(_Stored(first, self.end - 1, batch.at(first), batch))
        self._lasts.append(self.end - 1)
        return first

    def produce(self, data: bytes) -> tuple[Error, int]:
        """Append what a producer sent, unless it comes twice or out of order."""
        batch = Batch(data)
        if batch.producer_id >= 0:
            known = self._sequences.get(batch.producer_id)
            if known is not None and known[0] == batch.producer_epoch:
                _, sequence, following, base = known
                if batch.sequence == sequence:
                    return Error.NONE, base  # the answer to it got lost
                if batch.sequence != following:
                    late = batch.sequence < following
                    return (Error.DUPLICATE_SEQUENCE if late else Error.OUT_OF_ORDER_SEQUENCE), -1
        if batch.attributes & TRANSACTIONAL:
            self.open.setdefault(batch.producer_id, self.end)
        base = self.append(data)
        if batch.producer_id >= 0:
            following = batch.sequence + batch.count
            self._sequences[batch.producer_id] = (batch.producer_epoch, batch.sequence, following, base)
        return Error.NONE, base

    def end_transaction(self, producer_id: int, epoch: int, *, commit: bool) -> None:
        first = self.open.pop(producer_id, None)
        if first is None:
            return
        if not commit:
            self.aborted.append((producer_id, first, self.end))
        self.append(control_batch(producer_id, epoch, commit=commit))

    def fetch(self, offset: int, max_bytes: int, *, committed: bool) -> bytes:
        """Return whole batches from the one with `offset` on; at least one, if there is any."""
        upto = self.stable_end if committed else self.end
        found: list[bytes] = []
        size = 0
        for stored in self._batches[bisect_left(self._lasts, offset) :]:
            if stored.last >= upto or (found and size + len(stored.data) > max_bytes):
                break
            found.append(stored.data)
            size += len(stored.data)
        return b"".join(found)

    def at_time(self, timestamp_ms: int) -> tuple[int, int]:
        """Return (timestamp, offset) of the first record that is not older; (-1, -1) if there is none."""
        for stored in self._batches:
            if stored.batch.is_control or stored.batch.max_timestamp < timestamp_ms or stored.last < self.start:
                continue
            for delta, timestamp in stored.batch.timestamps():
                if timestamp >= timestamp_ms:
                    return timestamp, stored.first + delta
        return -1, -1


@dataclass
class Transaction:
    """What the coordinator knows about one transactional id."""

    producer_id: int
    epoch: int = -1
    timeout_ms: int = 60_000
    partitions: set[tuple[str, int]] = field(default_factory=set)
    offsets: dict[tuple[str, str, int], tuple[int, str | None]] = field(default_factory=dict)
    started: float | None = None
    last_result: bool | None = None
    """Whether the last one was committed: the same request may come again."""

    def begins(self) -> None:
        if self.started is None:
            self.started = time.monotonic()


class Cluster:
    """Topics, transactions and groups. Owned by the broker's thread; tests look at it between requests."""

    def __init__(self) -> None:
        self.topics: dict[str, list[PartitionLog]] = {}
        self.groups: dict[str, dict[tuple[str, int], tuple[int, str | None]]] = {}
        self.transactions: dict[str, Transaction] = {}
        self.forbidden_topics: set[str] = set()
        self.max_message_bytes = 1_048_588
        self._next_producer_id = 1000
        self.changed: Callable[[], None] = lambda: None
        """Called when a log has grown."""

    def create_topic(self, name: str, partitions: int) -> None:
        logs = self.topics.setdefault(name, [])
        logs += [PartitionLog() for _ in range(partitions - len(logs))]

    def log(self, topic: str, partition: int) -> PartitionLog | None:
        logs = self.topics.get(topic, [])
        return logs[partition] if 0 <= partition < len(logs) else None

    def new_producer_id(self) -> int:
        self._next_producer_id += 1
        return self._next_producer_id

    def init_transactions(self, transactional_id: str, timeout_ms: int) -> Transaction:
        """A producer takes the id over: what an earlier one left open is aborted, and that one is fenced."""
        found = self.transactions.get(transactional_id)
        if found is None:
            found = self.transactions[transactional_id] = Transaction(self.new_producer_id())
        if found.started is not None:
            self.end(found, commit=False)
        found.epoch += 1
        found.timeout_ms, found.last_result = timeout_ms, None
        return found

    def check(self, transactional_id: str, producer_id: int, epoch: int) -> tuple[Transaction, Error]:
        found = self.transactions.get(transactional_id)
        if found is None or found.producer_id != producer_id:
            return Transaction(-1), Error.INVALID_PRODUCER_ID_MAPPING
        return found, Error.NONE if found.epoch == epoch else Error.INVALID_PRODUCER_EPOCH

    def end(self, transaction: Transaction, *, commit: bool) -> None:
        for topic, partition in transaction.partitions:
            log = self.log(topic, partition)
            if log is not None:
                log.end_transaction(transaction.producer_id, transaction.epoch, commit=commit)
        if commit:
            for (group, topic, partition), value in transaction.offsets.items():
                self.groups.setdefault(group, {})[topic, partition] = value
        transaction.partitions, transaction.offsets = set(), {}
        transaction.started, transaction.last_result = None, commit
        self.changed()

    def expire(self) -> None:
        """Abort transactions that have been open for longer than their time limit."""
        now = time.monotonic()
        for each in self.transactions.values():
            if each.started is not None and (now - each.started) * 1000 > each.timeout_ms:
                self.end(each, commit=False)
                each.epoch += 1
                each.last_result = None

    def produce(self, topic: str, partition: int, data: bytes) -> tuple[Error, int]:
        log = self.log(topic, partition)
        if log is None:
            return Error.UNKNOWN_TOPIC_OR_PARTITION, -1
        if topic in self.forbidden_topics:
            return Error.TOPIC_AUTHORIZATION_FAILED, -1
        if len(data) > self.max_message_bytes:
            return Error.MESSAGE_TOO_LARGE, -1
        batch = Batch(data)
        for each in self.transactions.values():
            if each.producer_id == batch.producer_id:
                if each.epoch != batch.producer_epoch:
                    return Error.INVALID_PRODUCER_EPOCH, -1
                if batch.attributes & TRANSACTIONAL and (topic, partition) not in each.partitions:
                    return Error.INVALID_TXN_STATE, -1
        answer = log.produce(data)
        self.changed()
        return answer
