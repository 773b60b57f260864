"""The common part of RocksDB states of all shapes: keys as bytes, and their life in epochs.

The database contains only committed entries. Entries that the current epoch changed are in `cache`, as objects, and
`changed` lists them. So a rollback forgets the changed entries, a query reads the database, and no value must be copied
before the user gets it. Unchanged entries stay in the cache as long as there is room.

A shape may keep committed entries in the cache only, until `flush`. Code that reads the database directly calls `flush`
first.
"""

from __future__ import annotations

import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import chain, islice
from typing import Any, ClassVar, Protocol, TypeVar

from xxhash import xxh32_intdigest

from headwater.state.change_log import Combine, absorbed, keep_log, merged
from headwater.state.heap.store import Absent, KeyScope
from headwater.state.keys.key_groups import by_key_group, key_group, pairs_by_key_group
from headwater.state.keys.stable_hash import pack_signed
from headwater.state.rocksdb.database import BODY, HEAD, PREFIX_LENGTH, Changes, Database, DatabaseView, prefix
from headwater.state.rocksdb.keys import INT, MAX_INT, MIN_INT, STR, decode_key, encode_key, pack_int, pack_length
from headwater.state.rocksdb.options import RocksDBMemory
from headwater.state.rocksdb.values import ValuePickler
from headwater.state.snapshot.entries import Entries

MISSING: Any = Absent()
"""Default for look-ups in a cache: nothing is known about the entry."""

_STOP = pickle.dumps(None)[-1]
"""The last byte of every pickle."""
KEY_FOLLOWS = b"\0"
"""Last byte of a value that is followed by the pickle of its key, because the key cannot be decoded from its bytes."""

_OBJECT_BYTES = 130
OBJECT_BYTES_PER_BYTE = 2.5
"""Memory of an entry as Python objects, per byte of its pickle: measured on ints, short tuples and strings."""

_MIN_CACHED = 1024
SAMPLE = 64
"""Number of entries per epoch that are measured to estimate the size of an entry."""

PIECE_BYTES = 4 << 20
"""A larger key group goes into a full snapshot in pieces, so that it need not fit into memory at once."""


C = TypeVar("C")


class StoreOwner(Protocol):
    """What a store needs from its backend."""

    uid: str
    max_parallelism: int
    key_groups: range
    database: Database
    memory: RocksDBMemory
    log_changes: bool

    def write_committed(self, changes: Changes, done: Callable[[], None]) -> None:
        """Write committed entries, then call `done`. No query runs between the two."""
        ...

    def view(self, epoch: int) -> DatabaseView:
        """Return the database as it was when the durable checkpoint of `epoch` was cut. Raises `QueryError`."""
        ...


class RocksStore(ABC):
    """One state. Subclasses add the shape; they are also the user's state objects."""

    def __init__(self, owner: StoreOwner, scope: KeyScope, name: str, state_id: int, namespaced: bool) -> None:
        self._owner = owner
        self._scope = scope
        self._name = name
        self._namespaced = namespaced
        self._max_parallelism = owner.max_parallelism
        self._key_groups = owner.key_groups
        groups = range(owner.max_parallelism)
        self._heads = [prefix(group, state_id, HEAD) if group in self._key_groups else b"" for group in groups]
        self._bodies = [prefix(group, state_id, BODY) if group in self._key_groups else b"" for group in groups]
        self.cache: dict[Any, Any] = {}
        self.changed: dict[Any, Any] = {}
        """{key: what the shape must know about the entry before the epoch}"""
        self._since: dict[Any, Any] = {}
        """`changed` of the committed epochs since the last cut."""
        self._in_flight: dict[Any, Any] = {}
        self._kept: dict[int, dict[Any, Any]] = {}
        """{epoch of a durable checkpoint: `changed` of the next one}, for readers that pinned the epoch."""
        self._count: int | None = 0
        """Number of keys with a committed entry. None: unknown, count them."""
        self._object_bytes = _OBJECT_BYTES
        self._mean_bytes = 32.0
        self._cursor: tuple[int, bytes | None] = (self._key_groups.start, None)
        self._room = _MIN_CACHED
        self.overflows = False
        """The cache is too small for all entries that were used."""
        self.pickler = ValuePickler(owner.uid, name)
        self._dumps = self.pickler.dumps
        owner.memory.share_with(self)

    @property
    def _database(self) -> Database:
        return self._owner.database

    # -- bytes ---------------------------------------------------------------------------------------------------------

    def _address(self, key: Any) -> bytes:
        """Return the key of the head entry in the database. This is the hot path of reads and commits."""
        cls = key.__class__
        if cls is int:
            if MIN_INT <= key <= MAX_INT:
                group = xxh32_intdigest(pack_signed(hash(key))) % self._max_parallelism
                return self._heads[group] + pack_int(INT, key)
        elif cls is str:
            raw: bytes = key.encode("utf-8", "surrogatepass")
            return self._heads[xxh32_intdigest(raw) % self._max_parallelism] + pack_length(STR, len(raw)) + raw
        return self._heads[self.group_of(key)] + self._encode(key)[0]

    def group_of(self, key: Any) -> int:
        """Return the key group of a key of this store."""
        return key_group(key[0] if self._namespaced else key, self._max_parallelism)

    def by_key_group(self, keys: Iterable[Any]) -> dict[int, list[Any]]:
        """{key group: keys}, in the order of the groups."""
        return (pairs_by_key_group if self._namespaced else by_key_group)(keys, self._max_parallelism)

    def _encode(self, key: Any) -> tuple[bytes, bool]:
        """Return the bytes of a key after the prefix, and True if the key can be decoded from them."""
        if not self._namespaced:
            return encode_key(key)
        (first, first_says_all), (second, second_says_all) = encode_key(key[0]), encode_key(key[1])
        return first + second, first_says_all and second_says_all

    def _decode(self, address: bytes) -> Any:
        key, end = decode_key(address, PREFIX_LENGTH)
        return (key, decode_key(address, end)[0]) if self._namespaced else key

    def _head(self, key: Any, content: Any) -> bytes:
        """Return the value of the head entry of `key`."""
        data = self._dumps(content)
        cls = key.__class__
        if cls is int or cls is str or self._encode(key)[1]:
            return data
        return data + self._dumps(key) + KEY_FOLLOWS

    def _body(self, key: Any) -> bytes:
        """Return the prefix of the body entries of `key`: pieces of a list, entries of a map."""
        return self._bodies[self.group_of(key)] + self._encode(key)[0]

    def _body_at(self, address: bytes, group: int) -> bytes:
        """Return the prefix of a key's body entries. `address` is the address of its head.

        Does not encode the key again: if its class has changed, the bytes may differ.
        """
        return self._bodies[group] + address[PREFIX_LENGTH:]

    def _key_in(self, address: bytes, data: bytes) -> Any:
        """Return the key of a head entry."""
        return self._decode(address) if data[-1] == _STOP else self._database.key_behind(data)

    # -- cache ---------------------------------------------------------------------------------------------------------

    def _note_size(self, size: int) -> None:
        """An entry of `size` bytes was read."""
        self._mean_bytes += (size - self._mean_bytes) * 0.01

    def _note_sizes(self, written: Changes) -> None:
        """Measure a few of the `written` entries, to estimate the size of an entry."""
        step = max(1, len(written) // SAMPLE)
        sizes = [len(data) for _, data in written[::step] if data is not None]
        if sizes:
            self._mean_bytes += (sum(sizes) / len(sizes) - self._mean_bytes) * 0.5

    def _entries_with_room(self) -> int:
        cost = self._object_bytes + OBJECT_BYTES_PER_BYTE * self._mean_bytes
        return max(_MIN_CACHED, int(self._owner.memory.object_bytes_per_store() / cost))

    def make_room(self, needed: int = 0) -> None:
        """Remove the oldest unchanged entries from the cache, a quarter at a time. Changed entries must stay."""
        limit = self._entries_with_room()
        excess = len(self.cache) + needed - limit
        if excess >= 0:
            self.overflows = True
            changed, cache = self.changed, self.cache
            unchanged = (key for key in cache if key not in changed) if changed else iter(cache)
            for key in list(islice(unchanged, excess + limit // 4)):
                del cache[key]
        # If all entries are changed, nothing can go: raise the limit, so that not every new entry comes here.
        self._room = max(limit, len(self.cache) + needed + limit // 4)

    # -- epochs --------------------------------------------------------------------------------------------------------

    def changes(self) -> dict[Any, Any]:
        """Return all changes since the last cut, including those of the current epoch."""
        return merged(self._since, self.changed, self._combination()) if self._since else self.changed

    @property
    def has_news(self) -> bool:
        """True if an epoch was accepted since the last durable checkpoint that changed something."""
        return bool(self._since or self._in_flight)

    def keys_written(self) -> Collection[Any]:
        """Return the keys that the current epoch has changed so far."""
        return self.changed

    @abstractmethod
    def collect(self) -> Changes:
        """Return the epoch's changes as bytes. If it raises, the epoch can only be rolled back."""

    def committed_now(self, *, cut: bool) -> None:
        """Finish a commit: the result of `collect` is in the database."""
        if self._owner.log_changes:
            log = self._absorbed()
            self._in_flight, self._since = (log, {}) if cut else (self._in_flight, log)
        self.changed = {}

    def _absorbed(self) -> dict[Any, Any]:
        """Like `changes()`, but reuses `_since` or `changed` for the result: it costs only the epoch's own changes."""
        return absorbed(self._since, self.changed, self._combination())

    def flush(self) -> None:
        """Write all committed entries to the database. Only the processing thread may call this."""

    def checkpoint_completed(self, keep_as: int | None = None, *, join: bool = False) -> None:
        if keep_as is not None:
            keep_log(self._kept, keep_as, self._in_flight, self._kept_combination() if join else None)
        self._in_flight = {}

    def _kept_combination(self) -> tuple[Combine | None] | None:
        """Return how to join logs for readers, if they can be joined long after their epochs."""
        return (self._combination(),)

    def forget_before(self, epoch: int) -> None:
        """Nobody reads the state of earlier epochs any more."""
        self._kept = {kept: log for kept, log in self._kept.items() if kept >= epoch}

    def checkpoint_failed(self) -> None:
        self._since, self._in_flight = absorbed(self._in_flight, self._since, self._combination()), {}

    def rollback(self) -> None:
        """Forget the epoch's changes."""
        for key in self.changed:
            self.cache.pop(key, None)
        self.changed = {}

    def _combination(self) -> Combine | None:
        """Return how to combine two log entries of this shape; None: the older one wins."""
        return None

    def keys_changed(self, log: dict[Any, Any]) -> Collection[Any]:
        """Return the keys of the entries in `log`."""
        return log

    # -- all keys ------------------------------------------------------------------------------------------------------

    @abstractmethod
    def has(self, key: Any) -> bool:
        """Return True if `key` has an entry now."""

    @abstractmethod
    def clear(self) -> None:
        """Remove the entry of the current key."""

    @abstractmethod
    def count(self) -> int:
        """Return how many keys have an entry now."""

    @abstractmethod
    def committed(self, key: Any) -> Any:
        """Return the committed entry of `key`, or ABSENT. Any thread that holds the backend's lock may call this."""

    @abstractmethod
    def stored_in(self, view: Database | DatabaseView, key: Any) -> Any:
        """Return the entry of `key` in the database, or in an earlier state of it; ABSENT if there is none."""

    def newest(self, key: Any) -> Any:
        """Return the entry after the last accepted epoch: the objects of the epoch may change while they are read."""
        return self.committed(key)

    def durable(self, key: Any, epoch: int) -> Any:
        """Return the entry of `key` as of the last durable checkpoint, or the pinned one of `epoch`, or ABSENT."""
        if any(self._is_in(log, key) for log in self._logs_since(epoch)):
            return self.stored_in(self._owner.view(epoch), key)
        return self.committed(key)

    def _logs_since(self, epoch: int) -> list[dict[Any, Any]]:
        """Return the logs of all accepted changes after a durable checkpoint, the oldest first."""
        kept = [self._kept[each] for each in sorted(self._kept) if each >= epoch]
        return [*kept, self._in_flight, self._since]

    def _is_in(self, log: dict[Any, Any], key: Any) -> bool:
        """Return True if `log` says that `key` changed."""
        return key in log

    def number(self) -> int | None:
        """Return how many keys have an entry after the last accepted epoch; None if that is not known."""
        return self._count

    def some_keys(self, most: int) -> list[Any]:
        """Return up to `most` keys that may have an entry, whichever are found first."""
        return list(islice(chain(*self.candidates(None)), most))

    def candidates(self, epoch: int | None) -> tuple[Iterable[Any], Iterable[Any]]:
        """Return keys that may have an entry that `newest` (None) or `durable` finds: those in the database, others.

        The caller goes through the first without a lock.
        """
        logs = () if epoch is None else self._logs_since(epoch)
        changed = [key for log in logs for key in self._candidates_in(log)]
        return self._stored_keys(self._owned(self._heads)), changed

    def _candidates_in(self, log: dict[Any, Any]) -> Iterable[Any]:
        """Return the keys that may have had an entry before the changes in `log`."""
        return log

    finds_pairs: ClassVar[bool] = True

    def pairs_to_try(self, user_key: Any, epoch: int | None) -> list[Any]:
        """Return the (key, namespace) pairs of `user_key` that may have an entry; epoch None: now."""
        start = self._heads[key_group(user_key, self._max_parallelism)] + encode_key(user_key)[0]
        logs = () if epoch is None else self._logs_since(epoch)
        changed = [pair for log in logs for pair in log if pair[0] == user_key]
        return list(dict.fromkeys([*changed, *self._stored_keys([start])]))

    def _stored_keys(self, prefixes: Iterable[bytes]) -> Iterator[Any]:
        return (self._key_in(*entry) for start in prefixes for entry in self._database.scan(start))

    @abstractmethod
    def delta_entries(self, keys: Iterable[Any], log: dict[Any, Any]) -> Entries:
        """Return the changes of `keys`, some of `keys_changed(log)`."""

    @abstractmethod
    def full_entries(self, group: int) -> Iterator[Entries]:
        """Yield the current entries of a key group in pieces."""

    @abstractmethod
    def load_entries(self, entries: Any) -> Changes:
        """Return what a section's entries, of any backend, change in the database. The cache must be empty."""

    def keys_stored(self) -> list[Any]:
        """Return the keys that have an entry now."""
        return [key for group in self._key_groups for key in self.keys_of_group(group)]

    def keys_of_group(self, group: int) -> list[Any]:
        self.flush()
        changed = self.changed
        stored = (self._key_in(*entry) for entry in self._database.scan(self._heads[group]))
        if not changed:
            return list(stored)
        keys = [key for key in stored if key not in changed]
        return keys + [key for key in self.by_key_group(changed).get(group, ()) if self.has(key)]

    def pairs_of(self, user_key: Any) -> list[Any]:
        """Return the (key, namespace) pairs of a key in a namespaced state."""
        self.flush()
        changed = self.changed
        start = self._heads[key_group(user_key, self._max_parallelism)] + encode_key(user_key)[0]
        pairs = [pair for entry in self._database.scan(start) if (pair := self._key_in(*entry)) not in changed]
        return pairs + [pair for pair in changed if pair[0] == user_key and self.has(pair)]

    def next_keys(self, number: int) -> list[Any]:
        """Return the next `number` stored keys, in rounds; fewer at the end of a round."""
        self.flush()
        keys: list[Any] = []
        group, after = self._cursor
        while group < self._key_groups.stop and len(keys) < number:
            for address, data in islice(self._database.scan(self._heads[group], after), number - len(keys)):
                keys.append(self._key_in(address, data))
                after = address
            if len(keys) < number:
                group, after = group + 1, None
        self._cursor = (group, after) if group < self._key_groups.stop else (self._key_groups.start, None)
        return keys

    def stored_count(self) -> int:
        """Return how many keys have a committed entry."""
        if self._count is None:
            self.flush()
            self._count = sum(1 for start in self._owned(self._heads) for _ in self._database.scan(start))
        return self._count

    def loaded(self) -> None:
        """Forget all cached knowledge: the database has just been filled by a restore."""
        self.cache, self.changed, self._since, self._in_flight, self._kept, self._count = {}, {}, {}, {}, {}, None

    def _owned(self, prefixes: list[bytes]) -> list[bytes]:
        return prefixes[self._key_groups.start : self._key_groups.stop]


def in_pieces(rows: Iterable[C], size: Callable[[C], int]) -> Iterator[list[C]]:
    """Yield `rows` in lists of about `PIECE_BYTES`."""
    piece: list[C] = []
    total = 0
    for row in rows:
        piece.append(row)
        total += size(row)
        if total >= PIECE_BYTES:
            yield piece
            piece, total = [], 0
    if piece:
        yield piece
