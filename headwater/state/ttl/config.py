"""`StateTtlConfig`: when state of a key expires. Settings only; `expiring.py` acts on them."""

from __future__ import annotations

from enum import Enum
from typing import TypeVar

from headwater.common.errors import ConfigurationError, TypeMismatchError
from headwater.common.time import Duration, DurationLike, Time, to_millis

E = TypeVar("E", bound=Enum)


class StateTtlConfig:
    """How long state lives after it was last written (or read), and by which clock.

    As in PyFlink. In addition, `use_event_time()` lets state expire by the watermark, so that a backfill of last year
    keeps and drops the same state as the live job did.
    """

    class UpdateType(Enum):
        """Which accesses restart the time to live."""

        Disabled = 0
        """State does not expire."""
        OnCreateAndWrite = 1
        """Every write restarts it."""
        OnReadAndWrite = 2
        """Every write and every read restarts it."""

    class StateVisibility(Enum):
        """Whether a read returns expired state."""

        ReturnExpiredIfNotCleanedUp = 0
        """A read returns it if it has not been removed yet. That read then removes it."""
        NeverReturnExpired = 1
        """A read never returns it."""

    class TtlTimeCharacteristic(Enum):
        """The clock by which state expires."""

        ProcessingTime = 0
        """The epoch's processing time."""
        EventTime = 1
        """The operator's watermark (not in PyFlink). State written before the first watermark gets its date later."""

        # Other spellings, after the names of clocks elsewhere in Flink's documentation.
        PROCESSING_TIME = 0
        EVENT_TIME = 1

    class CleanupStrategies:
        """How expired state is removed that nobody reads any more."""

        class Strategies(Enum):
            """The strategies that can be asked for."""

            FULL_STATE_SCAN_SNAPSHOT = 0
            INCREMENTAL_CLEANUP = 1
            ROCKSDB_COMPACTION_FILTER = 2

        class CleanupStrategy:
            """Base of the strategies' settings."""

        class EmptyCleanupStrategy(CleanupStrategy):
            """A strategy without settings."""

        class IncrementalCleanupStrategy(CleanupStrategy):
            """Examine some keys for every key that changed, and remove expired entries."""

            def __init__(self, cleanup_size: int, run_cleanup_for_every_record: bool) -> None:
                self._cleanup_size = cleanup_size
                self._run_cleanup_for_every_record = run_cleanup_for_every_record

            def get_cleanup_size(self) -> int:
                return self._cleanup_size

            def run_cleanup_for_every_record(self) -> bool:
                return self._run_cleanup_for_every_record

        class RocksdbCompactFilterCleanupStrategy(CleanupStrategy):
            """In Flink: remove entries while RocksDB compacts. Here: examine some keys for every key that changed."""

            def __init__(
                self,
                query_time_after_num_entries: int,
                periodic_compaction_time: Duration = Duration.of_days(30),  # noqa: B008 - PyFlink's signature; immutable
            ) -> None:
                self._query_time_after_num_entries = query_time_after_num_entries
                self._periodic_compaction_time = periodic_compaction_time

            def get_query_time_after_num_entries(self) -> int:
                return self._query_time_after_num_entries

            def get_periodic_compaction_time(self) -> Duration:
                return self._periodic_compaction_time

        EMPTY_STRATEGY = EmptyCleanupStrategy()

        def __init__(
            self,
            strategies: dict[
                StateTtlConfig.CleanupStrategies.Strategies, StateTtlConfig.CleanupStrategies.CleanupStrategy
            ],
            is_cleanup_in_background: bool,
        ) -> None:
            self._strategies = strategies
            self._is_cleanup_in_background = is_cleanup_in_background

        def is_cleanup_in_background(self) -> bool:
            return self._is_cleanup_in_background

        def in_full_snapshot(self) -> bool:
            return StateTtlConfig.CleanupStrategies.Strategies.FULL_STATE_SCAN_SNAPSHOT in self._strategies

        def get_incremental_cleanup_strategy(
            self,
        ) -> StateTtlConfig.CleanupStrategies.IncrementalCleanupStrategy | None:
            """What was asked for, else the background's default, else None."""
            kinds = StateTtlConfig.CleanupStrategies
            strategy = self._strategies.get(kinds.Strategies.INCREMENTAL_CLEANUP)
            if isinstance(strategy, kinds.IncrementalCleanupStrategy):
                return strategy
            return kinds.IncrementalCleanupStrategy(5, False) if self._is_cleanup_in_background else None

        def get_rocksdb_compact_filter_cleanup_strategy(
            self,
        ) -> StateTtlConfig.CleanupStrategies.RocksdbCompactFilterCleanupStrategy | None:
            """What was asked for, else the background's default, else None."""
            kinds = StateTtlConfig.CleanupStrategies
            strategy = self._strategies.get(kinds.Strategies.ROCKSDB_COMPACTION_FILTER)
            if isinstance(strategy, kinds.RocksdbCompactFilterCleanupStrategy):
                return strategy
            return kinds.RocksdbCompactFilterCleanupStrategy(1000) if self._is_cleanup_in_background else None

    class Builder:
        """Makes a `StateTtlConfig`. Defaults: OnCreateAndWrite, NeverReturnExpired, ProcessingTime."""

        def __init__(self, ttl: DurationLike) -> None:
            self._ttl = _checked(ttl)
            self._update_type = StateTtlConfig.UpdateType.OnCreateAndWrite
            self._state_visibility = StateTtlConfig.StateVisibility.NeverReturnExpired
            self._ttl_time_characteristic = StateTtlConfig.TtlTimeCharacteristic.ProcessingTime
            self._is_cleanup_in_background = True
            self._strategies: dict[
                StateTtlConfig.CleanupStrategies.Strategies, StateTtlConfig.CleanupStrategies.CleanupStrategy
            ] = {}

        def set_update_type(self, update_type: StateTtlConfig.UpdateType) -> StateTtlConfig.Builder:
            self._update_type = _member("set_update_type", StateTtlConfig.UpdateType, update_type)
            return self

        def update_ttl_on_create_and_write(self) -> StateTtlConfig.Builder:
            return self.set_update_type(StateTtlConfig.UpdateType.OnCreateAndWrite)

        def update_ttl_on_read_and_write(self) -> StateTtlConfig.Builder:
            return self.set_update_type(StateTtlConfig.UpdateType.OnReadAndWrite)

        def set_state_visibility(self, state_visibility: StateTtlConfig.StateVisibility) -> StateTtlConfig.Builder:
            self._state_visibility = _member("set_state_visibility", StateTtlConfig.StateVisibility, state_visibility)
            return self

        def return_expired_if_not_cleaned_up(self) -> StateTtlConfig.Builder:
            return self.set_state_visibility(StateTtlConfig.StateVisibility.ReturnExpiredIfNotCleanedUp)

        def never_return_expired(self) -> StateTtlConfig.Builder:
            return self.set_state_visibility(StateTtlConfig.StateVisibility.NeverReturnExpired)

        def set_ttl_time_characteristic(
            self, ttl_time_characteristic: StateTtlConfig.TtlTimeCharacteristic
        ) -> StateTtlConfig.Builder:
            self._ttl_time_characteristic = _member(
                "set_ttl_time_characteristic", StateTtlConfig.TtlTimeCharacteristic, ttl_time_characteristic
            )
            return self

        def use_processing_time(self) -> StateTtlConfig.Builder:
            return self.set_ttl_time_characteristic(StateTtlConfig.TtlTimeCharacteristic.ProcessingTime)

        def use_event_time(self) -> StateTtlConfig.Builder:
            """Expire by the watermark (not in PyFlink)."""
            return self.set_ttl_time_characteristic(StateTtlConfig.TtlTimeCharacteristic.EventTime)

        def cleanup_full_snapshot(self) -> StateTtlConfig.Builder:
            """Accepted for compatibility: full snapshots never contain expired entries, with or without this."""
            kinds = StateTtlConfig.CleanupStrategies
            self._strategies[kinds.Strategies.FULL_STATE_SCAN_SNAPSHOT] = kinds.EMPTY_STRATEGY
            return self

        def cleanup_incrementally(
            self, cleanup_size: int, run_cleanup_for_every_record: bool
        ) -> StateTtlConfig.Builder:
            """When a checkpoint is cut, examine `cleanup_size` keys for every key that its last epoch changed.

            `run_cleanup_for_every_record` has no effect: the clean-up runs with each checkpoint.
            """
            if isinstance(cleanup_size, bool) or not isinstance(cleanup_size, int) or cleanup_size < 1:
                raise ConfigurationError(
                    f"cleanup_incrementally: cleanup_size is {cleanup_size!r}; expected a whole number of at least 1"
                )
            kinds = StateTtlConfig.CleanupStrategies
            self._strategies[kinds.Strategies.INCREMENTAL_CLEANUP] = kinds.IncrementalCleanupStrategy(
                cleanup_size, run_cleanup_for_every_record
            )
            return self

        def cleanup_in_rocksdb_compact_filter(
            self,
            query_time_after_num_entries: int,
            periodic_compaction_time: Duration = Duration.of_days(30),  # noqa: B008 - PyFlink's signature; immutable
        ) -> StateTtlConfig.Builder:
            """Remove expired entries that nobody reads, even with `disable_cleanup_in_background`.

            The clean-up runs when a checkpoint is cut, with any backend, and not while RocksDB compacts: the numbers
            have no effect.
            """
            kinds = StateTtlConfig.CleanupStrategies
            self._strategies[kinds.Strategies.ROCKSDB_COMPACTION_FILTER] = kinds.RocksdbCompactFilterCleanupStrategy(
                query_time_after_num_entries, periodic_compaction_time
            )
            return self

        def disable_cleanup_in_background(self) -> StateTtlConfig.Builder:
            """Remove expired state only when it is accessed, unless a clean-up strategy is set."""
            self._is_cleanup_in_background = False
            return self

        def set_ttl(self, ttl: DurationLike) -> StateTtlConfig.Builder:
            self._ttl = _checked(ttl)
            return self

        def build(self) -> StateTtlConfig:
            return StateTtlConfig(
                self._update_type,
                self._state_visibility,
                self._ttl_time_characteristic,
                self._ttl,
                StateTtlConfig.CleanupStrategies(dict(self._strategies), self._is_cleanup_in_background),
            )

    def __init__(
        self,
        update_type: StateTtlConfig.UpdateType,
        state_visibility: StateTtlConfig.StateVisibility,
        ttl_time_characteristic: StateTtlConfig.TtlTimeCharacteristic,
        ttl: DurationLike,
        cleanup_strategies: StateTtlConfig.CleanupStrategies,
    ) -> None:
        self._update_type = update_type
        self._state_visibility = state_visibility
        self._ttl_time_characteristic = ttl_time_characteristic
        self._ttl = _checked(ttl)
        self._cleanup_strategies = cleanup_strategies

    @staticmethod
    def new_builder(ttl: DurationLike) -> StateTtlConfig.Builder:
        """`ttl` is a `Time`, `Duration`, `timedelta` or milliseconds; more than zero."""
        return StateTtlConfig.Builder(ttl)

    def get_update_type(self) -> StateTtlConfig.UpdateType:
        return self._update_type

    def get_state_visibility(self) -> StateTtlConfig.StateVisibility:
        return self._state_visibility

    def get_ttl(self) -> Time:
        return self._ttl

    def get_ttl_time_characteristic(self) -> StateTtlConfig.TtlTimeCharacteristic:
        return self._ttl_time_characteristic

    def is_enabled(self) -> bool:
        return self._update_type is not StateTtlConfig.UpdateType.Disabled

    def get_cleanup_strategies(self) -> StateTtlConfig.CleanupStrategies:
        return self._cleanup_strategies

    def __repr__(self) -> str:
        return (
            f"StateTtlConfig(ttl={self._ttl}, {self._update_type.name}, {self._state_visibility.name}, "
            f"{self._ttl_time_characteristic.name})"
        )


def _member(method: str, kind: type[E], found: object) -> E:
    """Return `found` if it is a member of the enum `kind`. Raises `TypeMismatchError` otherwise."""
    if not isinstance(found, kind):
        choices = ", ".join(f"StateTtlConfig.{kind.__name__}.{member.name}" for member in kind)
        raise TypeMismatchError(f"{method}() expects one of {choices}, found {found!r}")
    return found


def _checked(ttl: DurationLike) -> Time:
    return Time.milliseconds(to_millis(ttl, "ttl", minimum=1))
