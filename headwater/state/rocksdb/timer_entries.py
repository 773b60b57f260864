"""Timers as bytes in RocksDB. Each has two entries, numbers big-endian:

    key group (2) | state id (2) | part (1) | timer        order (8), and the timer if it cannot be decoded from the key
    0xfffe        | state id (2) | timestamp | order (8)   timer

The first entry says whether a timer is set, and its order; a key group is one range. The second entries are sorted in
the order of firing. Native checkpoints contain these bytes: the format must not change.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Final

from xxhash import xxh32_intdigest

from headwater.state.keys.key_groups import key_group
from headwater.state.keys.stable_hash import pack_signed
from headwater.state.rocksdb.database import HEAD, PREFIX_LENGTH, Changes, Database, prefix
from headwater.state.rocksdb.keys import INT, MAX_INT, MIN_INT, STR, decode_key, encode_key
from headwater.state.rocksdb.values import ValuePickler
from headwater.state.snapshot.section import EVENT_TIMERS, PROCESSING_TIMERS
from headwater.state.timers import Timer

_STATE_IDS: Final = {EVENT_TIMERS: 0xFFF0, PROCESSING_TIMERS: 0xFFF1}
"""Timers have ids of their own; those of states count from 1."""
_QUEUE: Final = struct.Struct(">HH")
_QUEUE_GROUP: Final = 0xFFFE
_ORDER: Final = struct.Struct(">Q")
_TIME: Final = struct.Struct(">BQ")
_USUAL_TIME: Final = 0x80

_pack_int_timer = struct.Struct(">BIBqBqB").pack
_pack_str_timer = struct.Struct(">BIBqBI").pack
_TUPLE_OF_3: Final = struct.unpack(">BI", encode_key((None,) * 3)[0][:5])
_NONE_BYTES: Final = encode_key(None)[0]
_NONE: Final = _NONE_BYTES[0]

_AT_ONCE: Final = 4096
"""Number of timers to look up, or to read for a snapshot, at once."""


class TimerEntries:
    """Converts the timers of one kind to entries, and back."""

    def __init__(self, uid: str, kind: str, max_parallelism: int) -> None:
        state_id = _STATE_IDS[kind]
        self._max_parallelism = max_parallelism
        self._heads = [prefix(group, state_id, HEAD) for group in range(max_parallelism)]
        self._queue = _QUEUE.pack(_QUEUE_GROUP, state_id)
        self.pickler = ValuePickler(uid, "timers")

    def put(self, changes: Changes, timer: Timer, order: int) -> None:
        """Append to `changes` what sets `timer`."""
        data = self.pickler.dumps(timer)
        address, says_all = self._address(timer)
        value = _ORDER.pack(order)
        changes.append((address, value if says_all else value + data))
        changes.append((self._place(timer[0], order), data))

    def drop(self, changes: Changes, timer: Timer, order: int) -> None:
        """Append to `changes` what deletes `timer`, which is set with this order."""
        changes.append((self._address(timer)[0], None))
        self.drop_place(changes, timer, order)

    def drop_place(self, changes: Changes, timer: Timer, order: int) -> None:
        """Like `drop`, for a timer that is then set again with another order."""
        changes.append((self._place(timer[0], order), None))

    def orders(self, database: Database, timers: Iterable[Timer]) -> dict[Timer, int]:
        """Return {timer: its order} for those of `timers` that are in the database."""
        addresses = sorted(((self._address(timer)[0], timer) for timer in timers), key=lambda pair: pair[0])
        orders: dict[Timer, int] = {}
        for start in range(0, len(addresses), _AT_ONCE):
            part = addresses[start : start + _AT_ONCE]
            for (_, timer), value in zip(part, database.get([address for address, _ in part]), strict=True):
                if value is not None:
                    orders[timer] = _ORDER.unpack_from(value)[0]
        return orders

    def in_order(self, database: Database, after: tuple[int, int] | None) -> Iterator[tuple[int, int, Timer]]:
        """Yield (timestamp, order, timer), in the order of firing, of all timers after (timestamp, order) `after`.

        None: of all timers.
        """
        loads = database.loads
        for place, data in database.scan(self._queue, None if after is None else self._place(*after)):
            timer = loads(data)
            yield timer[0], _ORDER.unpack_from(place, len(place) - 8)[0], timer

    def last_timestamp(self, database: Database) -> int | None:
        """Return the latest timestamp of all timers; None if there are none."""
        data = database.last(self._queue)
        return None if data is None else database.loads(data)[0]

    def of_group(self, database: Database, group: int) -> Iterator[list[tuple[Timer, int]]]:
        """Yield lists of (timer, order) of a key group."""
        piece: list[tuple[Timer, int]] = []
        for address, value in database.scan(self._heads[group]):
            timer = decode_key(address, PREFIX_LENGTH)[0] if len(value) == 8 else database.loads(value[8:])
            piece.append((timer, _ORDER.unpack_from(value)[0]))
            if len(piece) == _AT_ONCE:
                yield piece
                piece = []
        if piece:
            yield piece

    def _address(self, timer: Timer) -> tuple[bytes, bool]:
        """Return the key of the first entry, and True if the timer can be decoded from it."""
        timestamp, key, namespace = timer
        if namespace is None and timestamp.__class__ is int and MIN_INT <= timestamp <= MAX_INT:
            # A fast path for nearly all timers. The bytes are the same as below.
            cls = key.__class__
            if cls is int and MIN_INT <= key <= MAX_INT:
                head = self._heads[xxh32_intdigest(pack_signed(hash(key))) % self._max_parallelism]
                return head + _pack_int_timer(*_TUPLE_OF_3, INT, timestamp, INT, key, _NONE), True
            if cls is str:
                raw: bytes = key.encode("utf-8", "surrogatepass")
                head = self._heads[xxh32_intdigest(raw) % self._max_parallelism]
                return head + _pack_str_timer(*_TUPLE_OF_3, INT, timestamp, STR, len(raw)) + raw + _NONE_BYTES, True
        encoded, says_all = encode_key(timer)
        return self._heads[key_group(key, self._max_parallelism)] + encoded, says_all

    def _place(self, timestamp: int, order: int) -> bytes:
        return self._queue + _sortable(timestamp) + _ORDER.pack(order)


def _sortable(timestamp: int) -> bytes:
    """Return bytes that sort like the timestamps. Sums of timestamps and durations may exceed 64 bits."""
    if MIN_INT <= timestamp <= MAX_INT:
        return _TIME.pack(_USUAL_TIME, timestamp - MIN_INT)
    size = timestamp.bit_length() // 8 + 1
    if timestamp > 0:
        return bytes((_USUAL_TIME + size,)) + timestamp.to_bytes(size, "big")
    return bytes((_USUAL_TIME - size,)) + (timestamp + (1 << 8 * size)).to_bytes(size, "big")
