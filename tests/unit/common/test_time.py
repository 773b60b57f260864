from __future__ import annotations

import pickle
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.common.errors import ConfigurationError
from headwater.common.time import Duration, Instant, Time, to_millis


@pytest.mark.parametrize(
    ("duration", "millis"),
    [
        (Duration.of_days(2), 172_800_000),
        (Duration.of_hours(1), 3_600_000),
        (Duration.of_minutes(3), 180_000),
        (Duration.of_seconds(5), 5_000),
        (Duration.of_millis(7), 7),
        (Duration.of_nanos(1_999_999), 1),
        (Time.days(1), 86_400_000),
        (Time.hours(1), 3_600_000),
        (Time.minutes(1), 60_000),
        (Time.seconds(2), 2_000),
        (Time.milliseconds(4), 4),
        (timedelta(seconds=1, microseconds=1500), 1_001),
        (9, 9),
    ],
)
def test_anything_that_is_a_duration_becomes_milliseconds(duration: Any, millis: int) -> None:
    assert to_millis(duration) == millis


@pytest.mark.parametrize("wrong", ["5 s", 1.5, None, True, [1]])
def test_what_is_not_a_duration_is_refused_by_name(wrong: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"idle_timeout: expected a Duration.*found " + type(wrong).__name__):
        to_millis(wrong, "idle_timeout")


def test_a_duration_below_the_minimum_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="ttl: expected at least 1 ms, found 0 ms"):
        to_millis(0, "ttl", minimum=1)
    assert to_millis(timedelta(seconds=-1), minimum=None) == -1000


def test_fractions_are_refused_where_whole_numbers_are_meant() -> None:
    with pytest.raises(ConfigurationError, match="whole number of seconds"):
        Duration.of_seconds(1.5)  # type: ignore[arg-type]


def test_durations_are_values() -> None:
    assert Duration.of_seconds(60) == Duration.of_minutes(1)
    assert hash(Duration.of_seconds(60)) == hash(Duration.of_minutes(1))
    assert Duration.of_seconds(1) < Duration.of_minutes(1)
    assert pickle.loads(pickle.dumps(Duration.of_nanos(5))) == Duration.of_nanos(5)
    assert str(Time.seconds(2)) == "2000 ms"


@given(st.integers(-(10**15), 10**15))
def test_an_instant_keeps_its_milliseconds_also_before_1970(millis: int) -> None:
    assert Instant.of_epoch_milli(millis).to_epoch_milli() == millis
