"""Which engine runs the next epoch."""

from __future__ import annotations

from headwater.runtime.epoch.engine_choice import FULL_EPOCHS, SMALL_EPOCHS, EngineChoice, EngineSetting
from headwater.runtime.epoch.sizing import EpochSizer

BUDGET = 1_000


def choice(setting: EngineSetting = EngineSetting.AUTO) -> EngineChoice:
    return EngineChoice(EpochSizer(1_000), EpochSizer(30), setting)


def small(under_test: EngineChoice, number: int = 1) -> None:
    for _ in range(number):
        resident = under_test.resident
        under_test.observe(resident=resident, records=10, budget=BUDGET, duration_ms=5 if resident else 150)


def full(under_test: EngineChoice, number: int = 1) -> None:
    for _ in range(number):
        under_test.observe(resident=under_test.resident, records=BUDGET, budget=BUDGET, duration_ms=30)


def test_a_job_begins_with_shuffles_and_turns_resident_when_epochs_stay_small() -> None:
    under_test = choice()
    small(under_test, SMALL_EPOCHS - 1)
    assert not under_test.resident
    small(under_test)
    assert under_test.resident


def test_one_large_epoch_in_between_begins_the_count_anew() -> None:
    under_test = choice()
    small(under_test, SMALL_EPOCHS - 1)
    full(under_test)
    small(under_test, SMALL_EPOCHS - 1)
    assert not under_test.resident


def test_input_that_piles_up_goes_back_to_shuffles() -> None:
    under_test = choice()
    small(under_test, SMALL_EPOCHS)
    full(under_test, FULL_EPOCHS - 1)
    small(under_test)
    full(under_test, FULL_EPOCHS - 1)
    assert under_test.resident, "the resident engine caught up in between"
    full(under_test)
    assert not under_test.resident


def test_an_epoch_that_would_take_long_resident_does_not_count_as_small() -> None:
    under_test = choice()
    for _ in range(5):
        under_test.observe(resident=False, records=100_000, budget=1_000_000, duration_ms=500)
    assert not under_test.resident


def test_what_a_record_costs_resident_is_remembered() -> None:
    under_test = choice()
    small(under_test, SMALL_EPOCHS)
    for _ in range(FULL_EPOCHS):
        under_test.observe(resident=True, records=BUDGET, budget=BUDGET, duration_ms=900)  # slow functions
    assert not under_test.resident
    for _ in range(3):
        under_test.observe(resident=False, records=900, budget=BUDGET, duration_ms=500)
    assert not under_test.resident


def test_slow_epochs_of_a_few_records_do_not_keep_a_job_from_turning_resident() -> None:
    """On a busy machine an epoch of three records takes 60 ms; 20 of them would not take 400 ms."""
    under_test = choice()
    small(under_test, SMALL_EPOCHS)
    for _ in range(20):
        under_test.observe(resident=True, records=3, budget=BUDGET, duration_ms=60)
    under_test.failed()
    for _ in range(SMALL_EPOCHS):
        under_test.observe(resident=False, records=20, budget=BUDGET, duration_ms=300)
    assert under_test.resident


def test_epochs_with_shuffles_are_longer_and_so_read_more() -> None:
    """2,500 records per second: 100 in each resident epoch, and all of a second in one with shuffles."""
    under_test = choice()
    small(under_test, SMALL_EPOCHS)
    for records in (1, 100, 110, 90, 100):
        under_test.observe(resident=True, records=records, budget=BUDGET, duration_ms=6 + records / 50)
    under_test.failed()
    for _ in range(SMALL_EPOCHS):
        under_test.observe(resident=False, records=2_500, budget=5_000, duration_ms=150)
    assert under_test.resident


def test_an_epoch_that_also_started_the_resident_task_says_little() -> None:
    under_test = choice()
    small(under_test, SMALL_EPOCHS)
    for duration_ms in (10, 10, 1_000):
        under_test.observe(resident=True, records=200, budget=BUDGET, duration_ms=duration_ms)
    under_test.failed()
    for _ in range(SMALL_EPOCHS):
        under_test.observe(resident=False, records=300, budget=BUDGET, duration_ms=300)
    assert under_test.resident


def test_after_a_failed_attempt_the_next_runs_with_shuffles() -> None:
    under_test = choice()
    small(under_test, SMALL_EPOCHS)
    under_test.failed()
    assert not under_test.resident
    small(under_test, SMALL_EPOCHS)
    assert under_test.resident


def test_an_epoch_that_ran_elsewhere_than_chosen_turns_nothing() -> None:
    under_test = choice()
    small(under_test, SMALL_EPOCHS)
    for _ in range(FULL_EPOCHS):  # Spark had no core for the resident task
        under_test.observe(resident=False, records=10, budget=BUDGET, duration_ms=150)
    assert under_test.resident


def test_a_setting_is_kept() -> None:
    resident, shuffle = choice(EngineSetting.RESIDENT), choice(EngineSetting.SHUFFLE)
    for under_test in (resident, shuffle):
        small(under_test, 10)
        full(under_test, 10)
        under_test.failed()
    assert resident.resident and not shuffle.resident


def test_without_a_resident_engine_there_are_only_shuffles() -> None:
    under_test = EngineChoice(EpochSizer(1_000))
    small(under_test, 10)
    assert not under_test.resident


def test_each_engine_has_a_budget_of_its_own() -> None:
    under_test = choice()
    for _ in range(10):
        under_test.observe(resident=False, records=50_000, budget=50_000, duration_ms=900)
    assert under_test.budget() > 20_000
    under_test = choice(EngineSetting.RESIDENT)
    for _ in range(10):
        under_test.observe(resident=True, records=3_000, budget=3_000, duration_ms=30)
    assert under_test.budget() < 10_000
