"""Sources of messages that come by themselves and cannot be asked for again: they are kept in the driver.

A feed in the driver receives messages and puts them into a buffer. An epoch gets its messages in the payload of its
split, so that every attempt at it reads the same. They stay in the buffer until a durable checkpoint is behind them:
if the job goes back, they are read again. Then the feed may acknowledge them. What only the driver had is lost when it
dies, unless the server sends it again: how much that is, each source says.
"""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, NamedTuple

from headwater.common.connector import Source, Split, SplitReader
from headwater.common.errors import HeadwaterError
from headwater.datastream.connectors.decoding_reader import Decode, DecodingReader, Message

MOST: Final = 20_000
"""Messages in the buffer. A feed then waits, or its server does not send more before it is acknowledged."""

log = logging.getLogger("headwater.connectors")


class Position(NamedTuple):
    """How far a job has read."""

    offset: int = 0
    """So many messages, of all drivers."""
    token: Any = None
    """With which the feed goes on behind the last one."""
    ids: tuple[str, ...] = ()
    """Of messages that were read and perhaps not acknowledged: if they come again, they are dropped."""


class Received(NamedTuple):
    """One message in the buffer."""

    message: Message
    token: Any = None
    id: str | None = None
    """The same whenever the server sends the message; None: not known."""


class Feed(ABC):
    """Receives messages, in the driver."""

    @abstractmethod
    def start(self, position: Position, buffer: Buffer) -> None:
        """Begin to receive, in a thread, behind `position`. Called once. Raises if the server cannot be reached."""

    def acknowledge(self, received: list[Received]) -> None:
        """These are in a durable checkpoint. Any thread."""

    @abstractmethod
    def close(self) -> None: ...


class Buffer:
    """What was received and is not in a durable checkpoint. Thread safe."""

    def __init__(self, position: Position, feed: Feed) -> None:
        self._feed = feed
        self._base = position.offset
        self._kept: deque[Received] = deque()
        self._places: dict[str, int] = {}  # id -> offset, of those that are kept
        self._doubtful = deque([position.ids, ()], maxlen=2)
        """Ids of the last two drops: perhaps the server does not know yet that it need not send them again."""
        self._done = dict.fromkeys(position.ids)
        """Ids of the last messages that a durable checkpoint has, in order."""
        self._changed = threading.Condition()
        self._closed = False
        self._error: Exception | None = None

    def put(self, received: Received) -> None:
        """Add a message. Waits while there are too many; returns at once when the buffer is closed.

        One that is here already has come again over another connection, and is acknowledged there.
        """
        with self._changed:
            place = None if received.id is None else self._places.get(received.id)
            done = received.id is not None and place is None and received.id in self._done
            if place is not None:
                self._kept[place - self._base] = received
            elif not done:
                self._changed.wait_for(lambda: len(self._kept) < MOST or self._closed)
                if received.id is not None:
                    self._places[received.id] = self._base + len(self._kept)
                self._kept.append(received)
        if done:
            self._feed.acknowledge([received])

    def fail(self, error: Exception) -> None:
        """The feed has ended with an error: the job learns it with its next epoch."""
        with self._changed:
            self._error = error

    def slice(self, start: int, most: int) -> list[Received]:
        with self._changed:
            if self._error is not None:
                raise self._error
            first = start - self._base
            return [self._kept[index] for index in range(first, min(first + most, len(self._kept)))]

    def ids(self, start: int) -> tuple[str, ...]:
        """Of all before `start` that the server may send again."""
        with self._changed:
            before = (self._kept[index].id for index in range(max(0, start - self._base)))
            doubtful = (id for some in self._doubtful for id in some)
            return (*doubtful, *(id for id in before if id is not None))

    def drop(self, end: int) -> None:
        """All before `end` are in a durable checkpoint."""
        with self._changed:
            dropped = [self._kept.popleft() for _ in range(min(end - self._base, len(self._kept)))]
            if not dropped:
                return
            self._base += len(dropped)
            ids = tuple(each.id for each in dropped if each.id is not None)
            self._doubtful.append(ids)
            self._done.update(dict.fromkeys(ids))
            for old in list(islice(self._done, max(0, len(self._done) - MOST))):
                del self._done[old]
            for id in ids:
                del self._places[id]
            self._changed.notify_all()
        self._feed.acknowledge(dropped)

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()


@dataclass(frozen=True)
class _Payload:
    start: Position
    received: tuple[Received, ...] = ()


class BufferedSource(Source):
    """Base of such sources. One split: messages go through the driver."""

    bounded = False

    def __init__(self, decode: Decode) -> None:
        self._decode = decode
        self._running: tuple[Feed, Buffer] | None = None
        self._lock = threading.Lock()

    @abstractmethod
    def new_feed(self) -> Feed:
        """What receives the messages."""

    def discover_splits(self, parallelism: int, known: frozenset[str]) -> list[Split]:
        if known:
            return []
        self._buffer(Position())
        return [Split("all", None)]

    def _buffer(self, position: Position) -> Buffer:
        with self._lock:
            if self._running is None:
                feed = self.new_feed()
                buffer = Buffer(position, feed)
                try:
                    feed.start(position, buffer)
                except BaseException:
                    feed.close()
                    raise
                self._running = feed, buffer
            return self._running[1]

    def plan_read(self, split: Split, position: Position | None, budget: int) -> Split:
        at = position or Position()
        buffer = self._buffer(at)
        try:
            received = tuple(buffer.slice(at.offset, budget))
        except HeadwaterError:
            self.close()  # the next attempt begins with another feed
            raise
        return Split(split.split_id, _Payload(at._replace(ids=buffer.ids(at.offset)), received))

    def open_reader(self, split: Split, position: Position | None) -> SplitReader:
        return _Reader(self._decode, split)

    def checkpoint_committed(self, positions: Mapping[str, Any]) -> None:
        for position in positions.values():
            with self._lock:
                running = self._running
            if running is not None:
                running[1].drop(position.offset)

    def close(self) -> None:
        with self._lock:
            running, self._running = self._running, None
        if running is not None:
            running[1].close()
            running[0].close()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_running", "_lock")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _running=None, _lock=threading.Lock())


class _Reader(DecodingReader):
    gives_away = True

    def __init__(self, decode: Decode, split: Split) -> None:
        super().__init__(decode, split.split_id)
        payload: _Payload = split.payload
        self._received = deque(payload.received)
        self._position = payload.start

    def fetch(self, most: int) -> list[Message]:
        some = [self._received.popleft() for _ in range(min(most, len(self._received)))]
        at = self._position
        if some:
            ids = (each.id for each in some if each.id is not None)
            self._position = Position(at.offset + len(some), some[-1].token, (*at.ids, *ids))
        # Their number tells apart what looks the same: dead letters from one place are one letter.
        numbered = enumerate((each.message for each in some), at.offset + 1)
        return [message._replace(where=f"message {number} of {message.where}") for number, message in numbered]

    def position(self) -> Position:
        return self._position
