"""State that expires. Wrappers around plain state of any backend, so that state without TTL pays nothing.

The inner state stores (value, expiry) pairs: per value, per list element, per map entry. The expiry is in milliseconds
of the configured clock. None: the entry was written before the first watermark, and gets its expiry later.
As in Flink, an access that finds an expired entry removes it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from headwater.common.ids import MIN_WATERMARK
from headwater.state.api import ListState, MapState, State, ValueState
from headwater.state.copying import captured
from headwater.state.ttl.config import StateTtlConfig

Stamped = tuple[Any, int | None]
"""(value, expiry)"""

_DEFAULT_EXAMINED_PER_CHANGE = 2
_MIN_EXAMINED = 1000


class Clock(Protocol):
    """Tells the time. The backend is one."""

    processing_time_ms: int
    watermark: int


class PeekableValue(Protocol):
    """Value state with a `peek` that does not count as a touch."""

    def peek(self) -> Any: ...
    def value(self) -> Any: ...
    def update(self, value: Any) -> None: ...
    def clear(self) -> None: ...


class PeekableList(Protocol):
    """List state with a `peek` that does not count as a touch."""

    def peek(self) -> list[Any]: ...
    def get(self) -> list[Any]: ...
    def add(self, value: Any) -> None: ...
    def update(self, values: list[Any]) -> None: ...
    def clear(self) -> None: ...


class PeekableMap(Protocol):
    """Map state with a `peek` that does not count as a touch."""

    def peek(self) -> dict[Any, Any]: ...
    def get(self, key: Any) -> Any: ...
    def put(self, key: Any, value: Any) -> None: ...
    def remove(self, key: Any) -> None: ...
    def items(self) -> Iterable[tuple[Any, Any]]: ...
    def clear(self) -> None: ...


class TtlPolicy:
    """Gives entries their expiry and says which have expired."""

    def __init__(self, config: StateTtlConfig, clock: Clock) -> None:
        self._clock = clock
        self._ttl_ms = config.get_ttl().to_milliseconds()
        self._by_watermark = config.get_ttl_time_characteristic() is StateTtlConfig.TtlTimeCharacteristic.EventTime
        self.renew_on_read = config.get_update_type() is StateTtlConfig.UpdateType.OnReadAndWrite
        self.show_expired = config.get_state_visibility() is StateTtlConfig.StateVisibility.ReturnExpiredIfNotCleanedUp
        cleanup = config.get_cleanup_strategies()
        incremental = cleanup.get_incremental_cleanup_strategy()
        self._examined_per_change = 0 if incremental is None else incremental.get_cleanup_size()
        compacting = cleanup.get_rocksdb_compact_filter_cleanup_strategy()  # same as the background
        if cleanup.is_cleanup_in_background() or compacting is not None:
            self._examined_per_change = max(_DEFAULT_EXAMINED_PER_CHANGE, self._examined_per_change)

    def expiry(self) -> int | None:
        """Return the expiry of an entry that is written now."""
        if not self._by_watermark:
            return self._clock.processing_time_ms + self._ttl_ms
        watermark = self._clock.watermark
        return None if watermark == MIN_WATERMARK else watermark + self._ttl_ms

    def stamp(self, value: Any) -> Stamped:
        return (value, self.expiry())

    def expired(self, entry: Stamped) -> bool:
        expiry = entry[1]
        if expiry is None:
            return False
        return expiry <= (self._clock.watermark if self._by_watermark else self._clock.processing_time_ms)

    def alive(self, entry: Stamped) -> bool:
        return not self.expired(entry)

    def renewed(self, entry: Stamped) -> Stamped | None:
        """Return the entry with a new expiry if reading it changes the expiry, otherwise None."""
        if not self.renew_on_read and entry[1] is not None:
            return None
        expiry = self.expiry()
        return None if expiry == entry[1] else (entry[0], expiry)

    def lacks_date(self, entry: Stamped) -> bool:
        """Return True if the entry has no expiry yet and there is a watermark now."""
        return entry[1] is None and self._clock.watermark != MIN_WATERMARK

    def number_to_examine(self, changed: int) -> int:
        """Return how many keys to examine at the end of an epoch that changed `changed` keys."""
        if not self._examined_per_change:
            return 0
        return max(_MIN_EXAMINED, self._examined_per_change * changed)


class TtlValueState(ValueState[Any]):
    """One value that expires."""

    __slots__ = ("_inner", "_policy")

    def __init__(self, inner: PeekableValue, policy: TtlPolicy) -> None:
        self._inner = inner
        self._policy = policy

    def value(self) -> Any:
        inner, policy = self._inner, self._policy
        entry = inner.peek()
        if entry is None:
            return None
        if policy.expired(entry):
            inner.clear()
            return captured(entry[0]) if policy.show_expired else None
        entry = inner.value()
        renewed = policy.renewed(entry)
        if renewed is not None:
            inner.update(renewed)
        return entry[0]

    def live(self) -> Any:
        """As `value`: what is stored is not the value alone, so what `update` gets is a new entry anyway."""
        return self.value()

    def update(self, value: Any, given_away: bool = False) -> None:
        self._inner.update(None if value is None else self._policy.stamp(value))

    def clear(self) -> None:
        self._inner.clear()

    def purge(self) -> None:
        """Remove the value if it has expired; give it an expiry if it has none yet."""
        entry = self._inner.peek()
        if entry is None:
            return
        if self._policy.expired(entry):
            self._inner.clear()
        elif self._policy.lacks_date(entry):
            self._inner.update(self._policy.stamp(entry[0]))


class TtlListState(ListState[Any]):
    """A list whose elements expire one by one."""

    __slots__ = ("_inner", "_policy")

    def __init__(self, inner: PeekableList, policy: TtlPolicy) -> None:
        self._inner = inner
        self._policy = policy

    def get(self) -> list[Any]:
        inner, policy = self._inner, self._policy
        entries = inner.get()
        alive = [entry for entry in entries if policy.alive(entry)]
        renewed = [policy.renewed(entry) or entry for entry in alive]
        if len(alive) < len(entries) or any(new is not old for new, old in zip(renewed, alive, strict=True)):
            inner.update(renewed)
        return [entry[0] for entry in (entries if policy.show_expired else alive)]

    def add(self, value: Any) -> None:
        self._inner.add(self._policy.stamp(value))

    def add_all(self, values: Iterable[Any]) -> None:
        for value in values:
            self._inner.add(self._policy.stamp(value))

    def update(self, values: Iterable[Any]) -> None:
        self._inner.update([self._policy.stamp(value) for value in values])

    def clear(self) -> None:
        self._inner.clear()

    def purge(self) -> None:
        """Remove expired elements; give an expiry to those that have none yet."""
        policy = self._policy
        entries = self._inner.peek()
        if any(policy.expired(entry) or policy.lacks_date(entry) for entry in entries):
            alive = [entry for entry in entries if policy.alive(entry)]
            self._inner.update([policy.stamp(entry[0]) if policy.lacks_date(entry) else entry for entry in alive])


class TtlMapState(MapState[Any, Any]):
    """A map whose entries expire one by one."""

    __slots__ = ("_inner", "_policy")

    def __init__(self, inner: PeekableMap, policy: TtlPolicy) -> None:
        self._inner = inner
        self._policy = policy

    def get(self, key: Any) -> Any:
        inner, policy = self._inner, self._policy
        entry = inner.peek().get(key)
        if entry is None:
            return None
        if policy.expired(entry):
            inner.remove(key)
            return captured(entry[0]) if policy.show_expired else None
        entry = inner.get(key)
        renewed = policy.renewed(entry)
        if renewed is not None:
            inner.put(key, renewed)
        return entry[0]

    def put(self, key: Any, value: Any) -> None:
        self._inner.put(key, self._policy.stamp(value))

    def put_all(self, dict_value: dict[Any, Any] | Iterable[tuple[Any, Any]]) -> None:
        for key, value in dict(dict_value).items():
            self.put(key, value)

    def remove(self, key: Any) -> None:
        self._inner.remove(key)

    def contains(self, key: Any) -> bool:
        entry = self._inner.peek().get(key)
        if entry is None:
            return False
        if self._policy.expired(entry):
            self._inner.remove(key)
            return self._policy.show_expired
        return True

    def items(self) -> list[tuple[Any, Any]]:
        inner, policy = self._inner, self._policy
        shown: list[tuple[Any, Any]] = []
        for key, entry in list(inner.items()):
            if policy.expired(entry):
                inner.remove(key)
                if not policy.show_expired:
                    continue
            elif (renewed := policy.renewed(entry)) is not None:
                inner.put(key, renewed)
            shown.append((key, entry[0]))
        return shown

    def keys(self) -> list[Any]:
        return [key for key, _ in self.items()]

    def values(self) -> list[Any]:
        return [value for _, value in self.items()]

    def is_empty(self) -> bool:
        entries = self._inner.peek().values()
        return not entries if self._policy.show_expired else all(map(self._policy.expired, entries))

    def clear(self) -> None:
        self._inner.clear()

    def purge(self) -> None:
        """Remove expired entries; give an expiry to those that have none yet."""
        for key, entry in list(self._inner.peek().items()):
            if self._policy.expired(entry):
                self._inner.remove(key)
            elif self._policy.lacks_date(entry):
                self._inner.put(key, self._policy.stamp(entry[0]))


TtlState = TtlValueState | TtlListState | TtlMapState


def expiring(state: State, policy: TtlPolicy) -> TtlState:
    """Return `state` (value, list or map) wrapped with a TTL."""
    if isinstance(state, ValueState):
        return TtlValueState(state, policy)  # type: ignore[arg-type]  # every backend's plain state can be peeked at
    if isinstance(state, ListState):
        return TtlListState(state, policy)  # type: ignore[arg-type]
    assert isinstance(state, MapState)
    return TtlMapState(state, policy)  # type: ignore[arg-type]
