"""The requests that the test broker answers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from enum import IntEnum

from headwater.testing.kafka.state import Cluster, Error
from headwater.testing.kafka.wire import Reader, array, numbers, text


class Api(IntEnum):
    """Kafka's requests, for faults."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    INIT_PRODUCER_ID = 22
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    TXN_OFFSET_COMMIT = 28


VERSIONS: dict[Api, tuple[int, int]] = {
    Api.PRODUCE: (3, 7),
    Api.FETCH: (4, 5),
    Api.LIST_OFFSETS: (1, 2),
    Api.METADATA: (4, 4),
    Api.OFFSET_COMMIT: (2, 3),
    Api.OFFSET_FETCH: (1, 3),
    Api.FIND_COORDINATOR: (0, 2),
    Api.API_VERSIONS: (0, 0),
    Api.CREATE_TOPICS: (2, 2),
    Api.INIT_PRODUCER_ID: (0, 1),
    Api.ADD_PARTITIONS_TO_TXN: (0, 0),
    Api.ADD_OFFSETS_TO_TXN: (0, 0),
    Api.END_TXN: (0, 0),
    Api.TXN_OFFSET_COMMIT: (0, 0),
}
"""The versions that are spoken: the last ones before the flexible encoding."""

_EARLIEST, _LATEST = -2, -1


class Requests:
    """Answers requests from what `cluster` knows. All of it runs in the broker's event loop."""

    def __init__(self, cluster: Cluster, host: str, port: Callable[[], int]) -> None:
        self._cluster = cluster
        self._host = host
        self._port = port
        self.data = asyncio.Event()
        """Set, and replaced, when a log has grown."""
        self._waiting: dict[Api, Callable[[int, Reader], Awaitable[bytes]]] = {Api.FETCH: self._fetch}
        self._handlers: dict[Api, Callable[[int, Reader], bytes]] = {
            Api.PRODUCE: self._produce,
            Api.LIST_OFFSETS: self._list_offsets,
            Api.METADATA: self._metadata,
            Api.OFFSET_COMMIT: self._offset_commit,
            Api.OFFSET_FETCH: self._offset_fetch,
            Api.FIND_COORDINATOR: self._find_coordinator,
            Api.CREATE_TOPICS: self._create_topics,
            Api.INIT_PRODUCER_ID: self._init_producer_id,
            Api.ADD_PARTITIONS_TO_TXN: self._add_partitions,
            Api.ADD_OFFSETS_TO_TXN: self._add_offsets,
            Api.END_TXN: self._end_txn,
            Api.TXN_OFFSET_COMMIT: self._txn_offset_commit,
        }

    async def answer(self, api: int, version: int, request: Reader) -> bytes:
        self._cluster.expire()
        if api == Api.API_VERSIONS:
            error = Error.NONE if version == 0 else Error.UNSUPPORTED_VERSION
            return numbers("h", error) + array(numbers("hhh", key, *span) for key, span in VERSIONS.items())
        if api in self._waiting:
            return await self._waiting[Api(api)](version, request)
        return self._handlers[Api(api)](version, request)

    # --- topics

    def _metadata(self, version: int, request: Reader) -> bytes:
        names = request.array(request.name)
        known = self._cluster.topics

        def topic(name: str) -> bytes:
            logs = known.get(name)
            if logs is None:
                return numbers("h", Error.UNKNOWN_TOPIC_OR_PARTITION) + text(name) + b"\0" + array([])
            one = array([numbers("i", 0)])
            return (
                numbers("h", 0)
                + text(name)
                + b"\0"
                + array(numbers("hii", 0, index, 0) + one + one for index in range(len(logs)))
            )

        node = numbers("i", 0) + text(self._host) + numbers("i", self._port()) + text(None)
        topics = array(map(topic, list(known) if names is None else names))
        return numbers("i", 0) + array([node]) + text("test-cluster") + numbers("i", 0) + topics

    def _create_topics(self, version: int, request: Reader) -> bytes:
        def topic() -> bytes:
            name, partitions, _ = request.name(), request.number("i"), request.number("h")
            request.items(lambda: (request.number("i"), request.items(lambda: request.number("i"))))
            request.items(lambda: (request.text(), request.text()))
            exists = name in self._cluster.topics
            if not exists:
                self._cluster.create_topic(name, max(1, partitions))
            return text(name) + numbers("h", Error.TOPIC_ALREADY_EXISTS if exists else 0) + text(None)

        return numbers("i", 0) + array(request.items(topic))

    # --- records

    def _produce(self, version: int, request: Reader) -> bytes:
        request.text(), request.number("h"), request.number("i")

        def partition(topic: str) -> bytes:
            index, data = request.number("i"), request.blob()
            error, base = self._cluster.produce(topic, index, data)
            return numbers("ihqq", index, error, base, -1) + (numbers("q", 0) if version >= 5 else b"")

        return self._by_topic(request, partition) + numbers("i", 0)

    async def _fetch(self, version: int, request: Reader) -> bytes:
        request.number("i")
        wait_ms, _, _ = request.number("i"), request.number("i"), request.number("i")
        committed = bool(request.number("b"))

        def wanted() -> tuple[int, int, int]:
            index, offset = request.number("i"), request.number("q")
            if version >= 5:
                request.number("q")
            return index, offset, request.number("i")

        asked = request.items(lambda: (request.name(), request.items(wanted)))
        deadline = asyncio.get_running_loop().time() + wait_ms / 1000
        while True:
            arrival = self.data
            found, topics = False, []
            for topic, partitions in asked:
                answers = [self._fetch_one(version, topic, *each, committed=committed) for each in partitions]
                found = found or any(answer[0] for answer in answers)
                topics.append(text(topic) + array(answer[1] for answer in answers))
            left = deadline - asyncio.get_running_loop().time()
            if found or left <= 0:
                return numbers("i", 0) + array(topics)
            try:
                await asyncio.wait_for(arrival.wait(), left)
            except TimeoutError:
                continue

    def _fetch_one(
        self, version: int, topic: str, index: int, offset: int, max_bytes: int, *, committed: bool
    ) -> tuple[bool, bytes]:
        """Return whether there is something to say, and the answer."""
        log = self._cluster.log(topic, index)
        if log is None:
            head = numbers("ihqq", index, Error.UNKNOWN_TOPIC_OR_PARTITION, -1, -1)
            return True, head + (numbers("q", -1) if version >= 5 else b"") + array([]) + numbers("i", 0)
        outside = not log.start <= offset <= log.end
        error = Error.OFFSET_OUT_OF_RANGE if outside else Error.NONE
        records = b"" if outside else log.fetch(offset, max_bytes, committed=committed)
        aborted = [numbers("qq", pid, first) for pid, first, last in log.aborted if committed and last >= offset]
        head = numbers("ihqq", index, error, log.end, log.stable_end)
        start = numbers("q", log.start) if version >= 5 else b""
        return bool(error or records), head + start + array(aborted) + numbers("i", len(records)) + records

    def _list_offsets(self, version: int, request: Reader) -> bytes:
        request.number("i")
        committed = bool(request.number("b")) if version >= 2 else False

        def partition(topic: str) -> bytes:
            index, timestamp_ms = request.number("i"), request.number("q")
            log = self._cluster.log(topic, index)
            if log is None:
                return numbers("ihqq", index, Error.UNKNOWN_TOPIC_OR_PARTITION, -1, -1)
            if timestamp_ms == _EARLIEST:
                found = (-1, log.start)
            elif timestamp_ms == _LATEST:
                found = (-1, log.stable_end if committed else log.end)
            else:
                found = log.at_time(timestamp_ms)
            return numbers("ihqq", index, 0, *found)

        return (numbers("i", 0) if version >= 2 else b"") + self._by_topic(request, partition)

    # --- groups

    def _find_coordinator(self, version: int, request: Reader) -> bytes:
        node = numbers("i", 0) + text(self._host) + numbers("i", self._port())
        return numbers("ih", 0, 0) + text(None) + node if version >= 1 else numbers("h", 0) + node

    def _offset_commit(self, version: int, request: Reader) -> bytes:
        group = request.name()
        request.number("i"), request.text(), request.number("q")

        def partition(topic: str) -> bytes:
            index, offset, metadata = request.number("i"), request.number("q"), request.text()
            self._cluster.groups.setdefault(group, {})[topic, index] = (offset, metadata)
            return numbers("ih", index, 0)

        return (numbers("i", 0) if version >= 3 else b"") + self._by_topic(request, partition)

    def _offset_fetch(self, version: int, request: Reader) -> bytes:
        offsets = self._cluster.groups.get(request.name(), {})

        def partition(topic: str) -> bytes:
            index = request.number("i")
            offset, metadata = offsets.get((topic, index), (-1, ""))
            return numbers("iq", index, offset) + text(metadata) + numbers("h", 0)

        body = self._by_topic(request, partition)
        return (numbers("i", 0) if version >= 3 else b"") + body + (numbers("h", 0) if version >= 2 else b"")

    # --- transactions

    def _init_producer_id(self, version: int, request: Reader) -> bytes:
        transactional_id, timeout_ms = request.text(), request.number("i")
        if transactional_id is None:
            return numbers("ihqh", 0, 0, self._cluster.new_producer_id(), 0)
        transaction = self._cluster.init_transactions(transactional_id, timeout_ms)
        return numbers("ihqh", 0, 0, transaction.producer_id, transaction.epoch)

    def _add_partitions(self, version: int, request: Reader) -> bytes:
        transaction, error = self._cluster.check(request.name(), request.number("q"), request.number("h"))

        def partition(topic: str) -> bytes:
            index = request.number("i")
            known = self._cluster.log(topic, index) is not None
            if not error and known:
                transaction.partitions.add((topic, index))
                transaction.begins()
            return numbers("ih", index, error or (0 if known else Error.UNKNOWN_TOPIC_OR_PARTITION))

        return numbers("i", 0) + self._by_topic(request, partition)

    def _add_offsets(self, version: int, request: Reader) -> bytes:
        transaction, error = self._cluster.check(request.name(), request.number("q"), request.number("h"))
        if not error:
            transaction.begins()
        return numbers("ih", 0, error)

    def _txn_offset_commit(self, version: int, request: Reader) -> bytes:
        transactional_id, group = request.name(), request.name()
        transaction, error = self._cluster.check(transactional_id, request.number("q"), request.number("h"))

        def partition(topic: str) -> bytes:
            index, offset, metadata = request.number("i"), request.number("q"), request.text()
            if not error:
                transaction.offsets[group, topic, index] = (offset, metadata)
            return numbers("ih", index, error)

        return numbers("i", 0) + self._by_topic(request, partition)

    def _end_txn(self, version: int, request: Reader) -> bytes:
        transaction, error = self._cluster.check(request.name(), request.number("q"), request.number("h"))
        commit = bool(request.number("b"))
        if not error:
            if transaction.started is not None:
                self._cluster.end(transaction, commit=commit)
            elif transaction.last_result is not commit:
                error = Error.INVALID_TXN_STATE
        return numbers("ih", 0, error)

    def _by_topic(self, request: Reader, partition: Callable[[str], bytes]) -> bytes:
        """Answer a request that lists partitions by topic in the same order."""

        def topic() -> bytes:
            name = request.name()
            return text(name) + array(request.items(lambda: partition(name)))

        return array(request.items(topic))
