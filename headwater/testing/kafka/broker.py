"""The test broker's server: one node, one thread, connections and faults."""

from __future__ import annotations

import asyncio
import struct
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from headwater.testing.kafka.requests import Api, Requests
from headwater.testing.kafka.state import Cluster
from headwater.testing.kafka.wire import Reader, numbers

T = TypeVar("T")
HOST = "127.0.0.1"


class KafkaBroker:
    """A broker of one node for tests, reachable at `bootstrap_servers`. What it holds goes away with it.

    It has what a pipeline needs: topics, idempotent and transactional producers with fencing, `read_committed`,
    committed offsets of groups, offsets by time. It has no group rebalancing, compaction, quotas, TLS or SASL.

        with KafkaBroker({"orders": 3}) as broker:
            ... broker.bootstrap_servers ...
            broker.lose_replies(Api.END_TXN)    # applied, but the client never learns
            broker.stop(); broker.start()       # down for a while; nothing is lost
    """

    def __init__(self, topics: Mapping[str, int] | None = None) -> None:
        self._cluster = Cluster()
        for name, partitions in (topics or {}).items():
            self._cluster.create_topic(name, partitions)
        self._lost_replies: Counter[int] = Counter()
        self._lost_requests: Counter[int] = Counter()
        self.asked: Counter[int] = Counter()
        """{api: how many requests came}"""
        self._port = 0
        self._writers: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self._loop = asyncio.new_event_loop()
        self._requests = Requests(self._cluster, HOST, lambda: self._port)
        self._cluster.changed = self._grown
        self._thread = threading.Thread(target=self._loop.run_forever, name="kafka-broker", daemon=True)
        self._thread.start()
        self.start()

    @property
    def bootstrap_servers(self) -> str:
        return f"{HOST}:{self._port}"

    def __enter__(self) -> KafkaBroker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- for tests

    def start(self) -> None:
        """Listen, on the same port as before."""

        async def listen() -> None:
            self._server = await asyncio.start_server(self._serve, HOST, self._port)
            self._port = self._server.sockets[0].getsockname()[1]

        if self._server is None:
            asyncio.run_coroutine_threadsafe(listen(), self._loop).result(30)

    def stop(self) -> None:
        """Be down: no connection is accepted, open ones are cut. What is stored stays."""

        async def leave() -> None:
            assert self._server is not None
            self._server.close()
            self._server = None
            for writer in list(self._writers):
                writer.transport.abort()

        if self._server is not None:
            asyncio.run_coroutine_threadsafe(leave(), self._loop).result(30)

    def close(self) -> None:
        """Stop for good."""
        self.stop()

        async def end() -> None:
            others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)
            self._loop.stop()

        asyncio.run_coroutine_threadsafe(end(), self._loop)
        self._thread.join(30)
        self._loop.close()

    def create_topic(self, name: str, partitions: int) -> None:
        """Make a topic, or give it more partitions."""
        self._call(lambda: self._cluster.create_topic(name, partitions))

    def delete_topic(self, name: str) -> None:
        self._call(lambda: self._cluster.topics.pop(name))

    def delete_before(self, topic: str, partition: int, offset: int) -> None:
        """Let records be gone, as retention does."""

        def delete() -> None:
            self._cluster.topics[topic][partition].start = offset

        self._call(delete)

    def forbid_writes(self, topic: str) -> None:
        """Refuse whatever is produced to a topic: the client lacks the right."""
        self._call(lambda: self._cluster.forbidden_topics.add(topic))

    def limit_messages(self, max_bytes: int) -> None:
        """Refuse larger batches."""
        self._call(lambda: setattr(self._cluster, "max_message_bytes", max_bytes))

    def lose_replies(self, api: Api, times: int = 1) -> None:
        """Do what the next `times` requests ask, but cut the connection instead of an answer."""
        self._call(lambda: self._lost_replies.update({int(api): times}))

    def lose_requests(self, api: Api, times: int = 1) -> None:
        """Cut the connection when the next `times` requests come, and do nothing."""
        self._call(lambda: self._lost_requests.update({int(api): times}))

    def committed(self, group: str) -> dict[tuple[str, int], int]:
        """{(topic, partition): offset} of a group."""
        return self._call(lambda: {where: offset for where, (offset, _) in self._cluster.groups.get(group, {}).items()})

    def forget_group(self, group: str) -> None:
        """Let a group's offsets be gone, as after their retention."""
        self._call(lambda: self._cluster.groups.pop(group, None))

    def groups(self) -> list[str]:
        return self._call(lambda: list(self._cluster.groups))

    def end_offsets(self, topic: str) -> list[int]:
        """The offset behind the last record of each partition; marks of transactions count, too."""
        return self._call(lambda: [log.end for log in self._cluster.topics[topic]])

    def transactional_ids(self) -> list[str]:
        """Of all producers that ever were."""
        return self._call(lambda: list(self._cluster.transactions))

    def open_transactions(self) -> list[str]:
        return self._call(lambda: [name for name, each in self._cluster.transactions.items() if each.started])

    def _call(self, action: Callable[[], T]) -> T:
        """Do something in the broker's thread."""

        async def run() -> T:
            return action()

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result(30)

    # --- serving

    def _grown(self) -> None:
        arrived, self._requests.data = self._requests.data, asyncio.Event()
        arrived.set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            while True:
                (size,) = struct.unpack(">i", await reader.readexactly(4))
                data = await reader.readexactly(size)
                api, version, correlation, client = struct.unpack_from(">hhih", data)
                self.asked[api] += 1
                if self._takes(self._lost_requests, api):
                    return
                answer = await self._requests.answer(api, version, Reader(data, 10 + max(client, 0)))
                if self._takes(self._lost_replies, api):
                    return
                writer.write(numbers("ii", len(answer) + 4, correlation) + answer)
                await writer.drain()
        except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
            pass
        finally:
            self._writers.discard(writer)
            writer.transport.abort()

    @staticmethod
    def _takes(faults: Counter[int], api: Any) -> bool:
        if faults[api] <= 0:
            return False
        faults[api] -= 1
        return True
