"""Makes output visible exactly once: the messages and a mark that they are there, in one transaction.

The mark is the committed offset of a consumer group that nobody consumes with. Its name has the job's id and the sink's
uid. The offset says up to which epoch, and which part of it, output is visible. Kafka has it with the messages, or not
at all. So a commit that is repeated, after a lost answer or by another driver, sees what the first one did
(docs/decisions/0024-kafka-exactly-once.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import msgspec
import xxhash

from headwater.common.errors import HeadwaterError
from headwater.datastream.connectors.kafka.client import CONNECT_SECONDS, KafkaClient, consumer, library, producer
from headwater.datastream.connectors.kafka.messages import Messages, send
from headwater.datastream.connectors.spool import Spooled, read_spool
from headwater.datastream.connectors.spool_committer import SpoolCommitter
from headwater.datastream.connectors.spool_notes import NOTE, first_note

PART_BYTES: Final = 64 << 20
"""A transaction is not much larger than this: an epoch with more output takes several."""
PART_BITS: Final = 20
TRANSACTION_SECONDS: Final = 60.0


def mark_of(epoch: int, parts: int) -> int:
    """The offset that says: all before `epoch` is visible, and `parts` transactions of it."""
    return (epoch << PART_BITS) + parts


def parts_of(committables: Sequence[Spooled]) -> list[list[Spooled]]:
    """Cut the output of a checkpoint into transactions, in the order of epochs. The same output is cut the same way."""
    parts: list[list[Spooled]] = []
    size = 0
    for each in sorted(committables, key=lambda spooled: spooled.order):
        if not parts or size + each.size > PART_BYTES:
            parts.append([])
            size = 0
        parts[-1].append(each)
        size += each.size
    return parts


class MarkPlace(msgspec.Struct, frozen=True):
    """Where the mark of a job is: noted before its first commit, for as long as there are checkpoints of the job."""

    topic: str
    """The first topic that was ever written to. The mark is an offset of its first partition."""
    epoch: int
    """Of the first commit."""
    token: str
    """Part of the group's name (`first_note` says why)."""


class TransactionCommitter(SpoolCommitter):
    """Runs in the driver. Its transactional id is the sink's: a new driver's fences that of a driver before."""

    def __init__(self, owner: str, properties: Mapping[str, str], prefix: str, topic: str | None) -> None:
        super().__init__(owner)
        self._properties = properties
        self._prefix = prefix
        self._topic = topic
        """The topic of all messages, if there is only one."""
        self._producer: KafkaClient | None = None
        self._marks: KafkaClient | None = None
        self._place: MarkPlace | None = None
        self._undelivered: list[tuple[Any, Any]] = []
        """(message, error) of what the producer could not deliver."""
        self._visible = -1
        """The mark, as it is known since the producer was made."""

    @property
    def transactional_id(self) -> str:
        return f"{self._prefix}-{self._identity}"

    def _group(self, place: MarkPlace) -> str:
        """The consumer group whose offset is the mark."""
        return f"headwater-sink-{self._identity}-{place.token}"

    @property
    def _note(self) -> str:
        return f"{NOTE}{self.context.job_id}.json"

    @property
    def _identity(self) -> str:
        return f"{self.context.job_id}-{xxhash.xxh64_hexdigest(self.context.operator_uid.encode())}"

    def check(self) -> None:
        if self._topic is not None:
            check_new(self.owner, self._properties, self._topic)

    def commit(self, committables: list[Any]) -> None:
        for job_id in sorted({spooled.job_id for spooled in committables}):
            own = [spooled for spooled in committables if spooled.job_id == job_id]
            if job_id == self.context.job_id:
                self._commit_own(own)
            else:
                self._commit_for(job_id, own)

    def _commit_for(self, job_id: str, committables: list[Spooled]) -> None:
        """Commit what the job left whose checkpoint this one starts from: that job's mark says whether it is there."""
        other = TransactionCommitter(self.owner, self._properties, self._prefix, self._topic)
        other.open(replace(self.context, job_id=job_id))
        try:
            other.commit(committables)
        finally:
            other.close()

    def _commit_own(self, committables: list[Spooled]) -> None:
        kafka = library()
        try:
            self._commit(committables)
        except kafka.KafkaException as error:
            client, undelivered = self._producer or self._marks, self._undelivered[:1]
            self._give_up()
            assert client is not None  # one of them has raised it
            for message, reason in undelivered:  # the error of the transaction does not tell it
                where = f"partition {message.partition()} of topic '{message.topic()}'"
                raise client.failed(
                    f"cannot commit output: a message to {where}", kafka.KafkaException(reason)
                ) from None
            raise client.failed("cannot commit output", error) from None
        except BaseException:
            self._give_up()
            raise
        self.forget(committables)

    def _commit(self, committables: list[Spooled]) -> None:
        epoch = max(spooled.epoch for spooled in committables)
        if self._visible >= mark_of(epoch + 1, 0):
            return
        place = self._mark_place(min(committables, key=lambda spooled: spooled.order), epoch)
        client = self._producer if self._producer is not None else self._take_over(place, epoch)
        parts = parts_of(committables)
        for number, part in enumerate(parts):
            last = number + 1 == len(parts)
            mark = mark_of(epoch + 1, 0) if last else mark_of(epoch, number + 1)
            if self._visible >= mark:
                continue
            client.client.begin_transaction()
            for spooled in part:
                for messages in read_spool(spooled, self.context.files, Messages):
                    send(client, messages)
            marks = [library().TopicPartition(place.topic, 0, mark)]
            group = self._mark_client(place).client.consumer_group_metadata()
            client.client.send_offsets_to_transaction(marks, group, TRANSACTION_SECONDS)
            client.client.commit_transaction(TRANSACTION_SECONDS)
            self._visible = mark

    def _take_over(self, place: MarkPlace, epoch: int) -> KafkaClient:
        """Fence whoever wrote before, end what was left open, and only then ask how far that one came."""
        undelivered: list[tuple[Any, Any]] = []

        def delivered(error: Any, message: Any) -> None:
            if error is not None:
                undelivered.append((message, error))

        self._undelivered = undelivered
        own = {"transactional.id": self.transactional_id, "delivery.report.only.error": True, "on_delivery": delivered}
        client = producer(self.owner, self._properties, own)
        self._producer = client
        client.client.init_transactions(TRANSACTION_SECONDS)
        asked = [library().TopicPartition(place.topic, 0)]
        (found,) = self._mark_client(place).client.committed(asked, timeout=CONNECT_SECONDS)
        if found.error is not None:
            raise library().KafkaException(found.error)
        self._visible = found.offset
        if found.offset < 0:
            self._visible = -1
            self._check_never_marked(place, epoch)
        return client

    # --- where the mark is

    def _mark_client(self, place: MarkPlace) -> KafkaClient:
        if self._marks is None:
            self._marks = consumer(self.owner, self._properties, {"group.id": self._group(place)})
        return self._marks

    def _mark_place(self, first: Spooled, epoch: int) -> MarkPlace:
        """Return where the mark is. `first` is what is committed first, up to `epoch`, if nothing ever was."""
        if self._place is None:
            new = MarkPlace(self._topic or first.topic, epoch, xxhash.xxh64_hexdigest(first.name.encode()))
            noted = first_note(self.context.files, self._note, msgspec.json.encode(new))
            self._place = msgspec.json.decode(noted, type=MarkPlace)
        return self._place

    def _check_never_marked(self, place: MarkPlace, epoch: int) -> None:
        """Kafka has no mark. If there must have been one, output that is there already could be written again."""
        if epoch > self.context.resumed_epoch or place.epoch >= epoch:
            return  # this driver is the first that has this output, or nothing was ever committed before it
        raise HeadwaterError(
            f"{self.owner}: group '{self._group(place)}' at Kafka {self._properties.get('bootstrap.servers')} has no "
            f"offset any more (offsets.retention.minutes), so nobody knows whether the output of epoch {epoch} is "
            f"already there. Look whether it is; then set the group's offset of partition 0 of topic '{place.topic}' "
            f"to {mark_of(epoch + 1, 0)} if it is, or to {mark_of(epoch, 0)} if it is not, and start the job again"
        )

    def _give_up(self) -> None:
        """After an error nothing is known about the transaction: the next producer ends it and asks for the mark."""
        client, self._producer, self._visible = self._producer, None, -1
        if client is not None:
            client.client.purge()  # not close(), which would wait for a broker that may be down

    def close(self) -> None:
        self._producer = None  # nothing is open in it
        if self._marks is not None:
            self._marks.client.close()
            self._marks = None


def check_new(owner: str, properties: Mapping[str, str], topic: str) -> None:
    """Raise unless the cluster can be reached and has the topic."""
    client = consumer(owner, properties)
    try:
        if topic not in client.topics(topic):
            raise HeadwaterError(
                f"{owner}: Kafka {client.servers} has no topic '{topic}'; create it, or correct its name"
            )
    finally:
        client.client.close()
