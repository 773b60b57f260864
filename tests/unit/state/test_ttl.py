"""State that expires, by both clocks, on all shapes."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from typing import Any

import pytest

from headwater.common.errors import HeadwaterError, StateError, TypeMismatchError
from headwater.common.ids import MIN_WATERMARK
from headwater.common.time import Duration, Time
from headwater.state.descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)
from headwater.state.heap.backend import HeapKeyedStateBackend
from headwater.state.ttl.config import StateTtlConfig
from headwater.state.ttl.expiring import TtlPolicy


def ttl(build: Callable[[StateTtlConfig.Builder], Any] = lambda builder: None, ms: int = 100) -> StateTtlConfig:
    builder = StateTtlConfig.new_builder(Time.milliseconds(ms))
    build(builder)
    return builder.build()


def with_ttl(descriptor: StateDescriptor, config: StateTtlConfig) -> Any:
    descriptor.enable_time_to_live(config)
    return descriptor


def make_backend() -> HeapKeyedStateBackend:
    backend = HeapKeyedStateBackend("uid", 128, range(128))
    backend.current_key = "k"
    return backend


class Sum:
    def create_accumulator(self) -> int:
        return 0

    def add(self, value: int, accumulator: int) -> int:
        return accumulator + value

    def get_result(self, accumulator: int) -> str:
        return f"sum {accumulator}"

    def merge(self, left: int, right: int) -> int:
        return left + right


def test_a_value_lives_until_its_time() -> None:
    backend = make_backend()
    state = backend.get_state(with_ttl(ValueStateDescriptor("v"), ttl()))
    state.update("x")
    backend.processing_time_ms = 99
    assert state.value() == "x"
    backend.processing_time_ms = 100
    assert state.value() is None
    assert backend.number_of_entries() == 0


def test_a_write_gives_a_new_lease_a_read_only_if_asked() -> None:
    backend = make_backend()
    on_write = backend.get_state(with_ttl(ValueStateDescriptor("w"), ttl()))
    on_read = backend.get_state(with_ttl(ValueStateDescriptor("r"), ttl(lambda b: b.update_ttl_on_read_and_write())))
    on_write.update(1)
    on_read.update(1)
    backend.processing_time_ms = 60
    assert (on_write.value(), on_read.value()) == (1, 1)
    backend.processing_time_ms = 120
    assert (on_write.value(), on_read.value()) == (None, 1)
    on_write.update(2)
    backend.processing_time_ms = 219
    assert (on_write.value(), on_read.value()) == (2, 1)


def test_an_expired_value_is_shown_once_if_not_cleaned_up() -> None:
    backend = make_backend()
    config = ttl(lambda b: b.return_expired_if_not_cleaned_up())
    state = backend.get_state(with_ttl(ValueStateDescriptor("v"), config))
    state.update(1)
    backend.processing_time_ms = 500
    assert state.value() == 1
    assert state.value() is None


def test_event_time_follows_the_watermark() -> None:
    backend = make_backend()
    state = backend.get_state(with_ttl(ValueStateDescriptor("v"), ttl(lambda b: b.use_event_time())))
    backend.watermark = 1_000
    state.update(1)
    backend.processing_time_ms = 10**12
    backend.watermark = 1_099
    assert state.value() == 1
    backend.watermark = 1_100
    assert state.value() is None


def test_what_was_written_before_the_first_watermark_is_dated_by_it() -> None:
    backend = make_backend()
    state = backend.get_state(with_ttl(ValueStateDescriptor("v"), ttl(lambda b: b.use_event_time())))
    assert backend.watermark == MIN_WATERMARK
    state.update(1)
    backend.watermark = 10**12
    assert state.value() == 1
    backend.watermark = 10**12 + 100
    assert state.value() is None


def test_list_elements_expire_one_by_one() -> None:
    backend = make_backend()
    state = backend.get_state(with_ttl(ListStateDescriptor("l"), ttl()))
    state.add(1)
    backend.processing_time_ms = 60
    state.add_all([2, 3])
    assert state.get() == [1, 2, 3]
    backend.processing_time_ms = 110
    assert state.get() == [2, 3] == list(state)
    backend.processing_time_ms = 200
    assert state.get() == []
    assert backend.number_of_entries() == 0
    state.update([4])
    assert state.get() == [4]


def test_list_can_show_expired_elements_once_and_renew_the_others() -> None:
    backend = make_backend()
    config = ttl(lambda b: b.return_expired_if_not_cleaned_up().update_ttl_on_read_and_write())
    state = backend.get_state(with_ttl(ListStateDescriptor("l"), config))
    state.add("old")
    backend.processing_time_ms = 60
    state.add("new")
    backend.processing_time_ms = 110
    assert state.get() == ["old", "new"]
    backend.processing_time_ms = 209
    assert state.get() == ["new"]


def test_map_entries_expire_one_by_one() -> None:
    backend = make_backend()
    state = backend.get_state(with_ttl(MapStateDescriptor("m"), ttl()))
    state.put("a", 1)
    backend.processing_time_ms = 60
    state.put_all({"b": 2, "c": None})
    backend.processing_time_ms = 110
    assert "a" not in state and state.get("a") is None
    assert state.contains("c") and state["c"] is None
    assert sorted(state.keys()) == ["b", "c"]
    assert dict(state.items()) == {"b": 2, "c": None}
    assert not state.is_empty()
    backend.processing_time_ms = 160
    assert state.is_empty()
    assert list(state.values()) == []


def test_reducing_and_aggregating_state_start_anew() -> None:
    backend = make_backend()
    reducing = backend.get_state(with_ttl(ReducingStateDescriptor("r", lambda a, b: a + b), ttl()))
    aggregating = backend.get_state(with_ttl(AggregatingStateDescriptor("a", Sum()), ttl()))
    for value in (1, 2):
        reducing.add(value)
        aggregating.add(value)
    assert (reducing.get(), aggregating.get()) == (3, "sum 3")
    assert backend.committed_value("a", "k") is None
    backend.commit_epoch(cut=True)
    backend.checkpoint_completed()
    assert backend.committed_value("a", "k") == "sum 3"
    backend.processing_time_ms = 100
    assert (reducing.get(), aggregating.get()) == (None, None)
    reducing.add(5)
    assert reducing.get() == 5


def test_a_mutable_value_is_rolled_back_with_its_date() -> None:
    backend = make_backend()
    state = backend.get_state(with_ttl(ValueStateDescriptor("v"), ttl()))
    state.update([1])
    backend.commit_epoch(cut=True)
    backend.checkpoint_completed()
    state.value().append(9)  # type: ignore[union-attr]
    state.update([1, 2])
    assert state.value() == [1, 2]
    backend.rollback_epoch()
    assert state.value() == [1]


def test_full_snapshots_leave_expired_entries_out() -> None:
    backend = make_backend()
    value = backend.get_state(with_ttl(ValueStateDescriptor("v"), ttl()))
    elements = backend.get_state(with_ttl(ListStateDescriptor("l"), ttl()))
    entries = backend.get_state(with_ttl(MapStateDescriptor("m"), ttl()))
    for time, key in [(0, "old"), (60, "new")]:
        backend.processing_time_ms, backend.current_key = time, key
        value.update(key)
        backend.current_key = "k"
        elements.add(key)
        entries.put(key, key)
    backend.processing_time_ms = 110
    other = HeapKeyedStateBackend("uid", 128, range(128))
    for section in backend.full_sections():
        other.load_section(section)
    assert other.keys("v") == ["new"]
    assert other.committed_value("l", "k") == ["new"]
    assert other.committed_value("m", "k") == {"new": "new"}


def test_expired_state_that_nobody_asks_for_is_removed_bit_by_bit() -> None:
    backend = make_backend()
    state = backend.get_state(with_ttl(ValueStateDescriptor("v"), ttl()))
    for key in range(2_500):
        backend.current_key = key
        state.update(key)
    backend.delta_sections()
    backend.commit_epoch(cut=True)
    backend.checkpoint_completed()
    backend.processing_time_ms = 1_000
    sizes = []
    for _ in range(6):
        backend.begin_epoch()
        sections = backend.delta_sections()
        backend.commit_epoch(cut=True)
        backend.checkpoint_completed()
        sizes.append(backend.number_of_entries())
    assert sizes[0] == 1_500 and sizes[-1] == 0
    assert sections == []
    assert backend.current_key == 2_499  # the operator's key is not disturbed


def test_clean_up_is_part_of_the_delta() -> None:
    backend = make_backend()
    state = backend.get_state(with_ttl(MapStateDescriptor("m"), ttl()))
    state.put("a", 1)
    chain = backend.delta_sections()
    backend.commit_epoch(cut=True)
    backend.checkpoint_completed()
    backend.processing_time_ms = 1_000
    chain += backend.delta_sections()
    backend.commit_epoch(cut=True)
    backend.checkpoint_completed()
    other = HeapKeyedStateBackend("uid", 128, range(128))
    for section in chain:
        other.load_section(section)
    assert other.number_of_entries() == backend.number_of_entries() == 0


def test_background_clean_up_can_be_switched_off() -> None:
    backend = make_backend()
    state = backend.get_state(with_ttl(ValueStateDescriptor("v"), ttl(lambda b: b.disable_cleanup_in_background())))
    state.update(1)
    backend.processing_time_ms = 1_000
    for _ in range(3):
        backend.delta_sections()
        backend.commit_epoch(cut=True)
        backend.checkpoint_completed()
    assert backend.number_of_entries() == 1


def test_state_stored_without_ttl_cannot_get_one() -> None:
    backend = make_backend()
    backend.get_state(ValueStateDescriptor("v")).update(1)
    other = HeapKeyedStateBackend("uid", 128, range(128))
    for section in backend.full_sections():
        other.load_section(section)
    with pytest.raises(StateError, match="'v' of operator 'uid' is value state without TTL, but is asked for as"):
        other.get_state(with_ttl(ValueStateDescriptor("v"), ttl()))


def test_a_disabled_ttl_is_none() -> None:
    config = ttl(lambda b: b.set_update_type(StateTtlConfig.UpdateType.Disabled))
    assert not config.is_enabled()
    assert with_ttl(ValueStateDescriptor("v"), config).get_ttl_config() is None


@pytest.mark.parametrize("duration", [Time.seconds(1), Duration.of_seconds(1), datetime.timedelta(seconds=1), 1000])
def test_any_duration_will_do(duration: Any) -> None:
    assert StateTtlConfig.new_builder(duration).build().get_ttl().to_milliseconds() == 1000


@pytest.mark.parametrize("duration", [0, -1, "1s", None])
def test_a_bad_duration_is_refused(duration: Any) -> None:
    with pytest.raises((HeadwaterError, TypeError, ValueError), match="ttl"):
        StateTtlConfig.new_builder(duration)


def test_settings_read_back_as_in_pyflink() -> None:
    config = ttl(
        lambda b: b.cleanup_full_snapshot().cleanup_incrementally(7, True).cleanup_in_rocksdb_compact_filter(9)
    )
    strategies = config.get_cleanup_strategies()
    incremental = strategies.get_incremental_cleanup_strategy()
    rocksdb = strategies.get_rocksdb_compact_filter_cleanup_strategy()
    assert strategies.in_full_snapshot() and strategies.is_cleanup_in_background()
    assert incremental is not None and incremental.get_cleanup_size() == 7
    assert incremental.run_cleanup_for_every_record()
    assert rocksdb is not None and rocksdb.get_query_time_after_num_entries() == 9
    assert config.get_update_type() is StateTtlConfig.UpdateType.OnCreateAndWrite
    assert config.get_state_visibility() is StateTtlConfig.StateVisibility.NeverReturnExpired
    assert config.get_ttl_time_characteristic() is StateTtlConfig.TtlTimeCharacteristic.ProcessingTime
    assert StateTtlConfig.TtlTimeCharacteristic.EVENT_TIME is StateTtlConfig.TtlTimeCharacteristic.EventTime


def test_the_filter_of_rocksdb_removes_what_nobody_asks_for() -> None:
    config = ttl(lambda b: b.disable_cleanup_in_background().cleanup_in_rocksdb_compact_filter(1000))
    assert TtlPolicy(config, make_backend()).number_to_examine(1) > 0
    assert TtlPolicy(ttl(lambda b: b.disable_cleanup_in_background()), make_backend()).number_to_examine(1) == 0


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (lambda b: b.set_update_type("OnReadAndWrite"), "StateTtlConfig.UpdateType.OnReadAndWrite, found 'OnRead"),
        (lambda b: b.set_state_visibility(1), "StateTtlConfig.StateVisibility.NeverReturnExpired, found 1"),
        (lambda b: b.set_ttl_time_characteristic(None), "StateTtlConfig.TtlTimeCharacteristic.EventTime, found None"),
        (lambda b: b.cleanup_incrementally(0, True), "cleanup_size is 0; expected a whole number of at least 1"),
    ],
)
def test_bad_settings_are_refused_at_once(build: Any, says: str) -> None:
    with pytest.raises(HeadwaterError, match=re.escape(says)):
        ttl(build)


@pytest.mark.parametrize("make", [lambda b: 5, lambda b: None, lambda b: b])
def test_what_is_no_ttl_is_refused(make: Any) -> None:
    with pytest.raises(TypeMismatchError, match=r"state 'x': enable_time_to_live\(\) expects a StateTtlConfig"):
        ValueStateDescriptor("x").enable_time_to_live(make(StateTtlConfig.new_builder(Time.seconds(1))))


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: ValueStateDescriptor("x", "long"), "state 'x': a type must be a TypeInformation"),  # type: ignore[arg-type]
        (lambda: ReducingStateDescriptor("x", 5), "state 'x' needs a ReduceFunction"),
        (lambda: ReducingStateDescriptor("x", lambda a: a), r"of two values, found a lambda of \(a\)"),
        (lambda: AggregatingStateDescriptor("x", 5), "state 'x' needs an AggregateFunction"),
    ],
)
def test_bad_descriptors_are_refused(make: Callable[[], Any], says: str) -> None:
    with pytest.raises(TypeMismatchError, match=says):
        make()
