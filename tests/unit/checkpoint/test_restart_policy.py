"""When a failed job goes on."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.common.configuration import Configuration
from headwater.common.errors import ConfigurationError
from headwater.runtime.epoch.restart_policy import ExponentialDelay, FailureRate, FixedDelay, NoRestart, restart_policy


def test_none_gives_up_at_once() -> None:
    assert NoRestart().next_delay_ms([5], 5) is None


def test_fixed_delay_gives_up_after_its_attempts() -> None:
    policy = FixedDelay(attempts=2, delay_ms=300)
    assert policy.next_delay_ms([1], 1) == 300
    assert policy.next_delay_ms([1, 2], 2) == 300
    assert policy.next_delay_ms([1, 2, 3], 3) is None


def test_failure_rate_gives_up_when_failures_come_too_often() -> None:
    policy = restart_policy(
        Configuration.from_dict(
            {
                "restart-strategy.type": "failure-rate",
                "restart-strategy.failure-rate.max-failures-per-interval": 2,
                "restart-strategy.failure-rate.failure-rate-interval": 1_000,
                "restart-strategy.failure-rate.delay": 30,
            }
        )
    )
    assert policy == FailureRate(max_failures=2, interval_ms=1_000, delay_ms=30)
    assert policy.next_delay_ms([0, 500], 500) == 30
    assert policy.next_delay_ms([0, 500, 900], 900) is None
    assert policy.next_delay_ms([0, 500, 1_200], 1_200) == 30


def test_exponential_delay_grows_to_its_maximum() -> None:
    policy = ExponentialDelay(initial_ms=100, max_ms=1_000, multiplier=2, jitter=0)
    failures = [0, 1, 2, 3, 4, 5]
    delays = [policy.next_delay_ms(failures[: n + 1], 0) for n in range(6)]
    assert delays == [100, 200, 400, 800, 1_000, 1_000]


def test_exponential_delay_begins_anew_after_a_quiet_time() -> None:
    policy = ExponentialDelay(initial_ms=100, multiplier=2, jitter=0, reset_threshold_ms=10_000, attempts=2)
    assert policy.next_delay_ms([0, 50, 100], 100) is None
    assert policy.next_delay_ms([0, 50, 50 + 10_000 + 199], 0) is None  # 200 ms of it were the delay itself
    assert policy.next_delay_ms([0, 50, 50 + 10_000 + 200], 0) == 100


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=3000).map(sorted), st.integers(0, 10**9))
def test_jitter_stays_in_its_bounds_and_is_the_same_for_the_same_facts(failures: list[int], now_ms: int) -> None:
    policy = ExponentialDelay(initial_ms=1_000, max_ms=50_000, jitter=0.2)
    plain = ExponentialDelay(initial_ms=1_000, max_ms=50_000, jitter=0)
    delay, base = policy.next_delay_ms(failures, now_ms), plain.next_delay_ms(failures, now_ms)
    assert delay is not None and base is not None
    assert delay == policy.next_delay_ms(failures, now_ms)
    assert 0.8 * base - 1 <= delay <= min(50_000, 1.2 * base + 1)


def test_policies_come_from_configuration_values() -> None:
    assert restart_policy(Configuration()) == FixedDelay(10, 1_000)
    assert restart_policy(Configuration.from_dict({"restart-strategy.type": "none"})) == NoRestart()
    assert restart_policy(Configuration.from_dict({"restart-strategy.fixed-delay.attempts": 3})) == FixedDelay(3, 1_000)
    exponential = restart_policy(
        Configuration.from_dict(
            {
                "restart-strategy.type": "exponential-delay",
                "restart-strategy.exponential-delay.initial-backoff": 5,
                "restart-strategy.exponential-delay.attempts-before-reset-backoff": 4,
            }
        )
    )
    assert exponential == ExponentialDelay(initial_ms=5, attempts=4)
    with pytest.raises(ConfigurationError, match=r"restart-strategy.type: expected .*'sometimes'"):
        restart_policy(Configuration.from_dict({"restart-strategy.type": "sometimes"}))
