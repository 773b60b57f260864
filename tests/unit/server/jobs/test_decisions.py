"""What a leader does for a job, as a pure decision."""

from __future__ import annotations

from typing import Any

import pytest

from headwater.runtime.epoch.restart_policy import FixedDelay, NoRestart
from headwater.server.jobs.decisions import Close, JobFacts, Life, NoteDeath, OrderStart, Revoke, Watch, decide
from headwater.server.jobs.job_folder import Start
from headwater.server.jobs.records import DriverDeath, DriverEnd, DriverRecord, Order

POLICY = FixedDelay(2, 100)
DRIVER = DriverRecord(7, "boot/1", "here", 10)


def start(number: int = 1, **more: Any) -> Start:
    return Start(number, Order("s", 1), more.get("driver", DRIVER), None, more.get("end"), more.get("death"))


def facts(*starts: Start, life: Life = Life.ALIVE, **more: bool) -> JobFacts:
    return JobFacts(starts, life, more.get("cancelled", False), more.get("resumable", True), more.get("here", True))


def died(number: int, at_ms: int = 1_000) -> Start:
    return start(number, death=DriverDeath(at_ms, "it died"))


def test_a_new_job_is_started_and_a_cancelled_one_is_not() -> None:
    assert decide(facts(life=Life.NOBODY), POLICY) == OrderStart(1, 0)
    assert decide(facts(life=Life.NOBODY, cancelled=True), POLICY) == Close("CANCELED")


@pytest.mark.parametrize("status", ["FINISHED", "FAILED", "CANCELED"])
def test_a_program_that_ended_is_not_started_again(status: str) -> None:
    assert decide(facts(start(end=DriverEnd(status, 1, 5, "why"))), POLICY) == Close(status, "why")


def test_a_driver_that_runs_is_left_alone() -> None:
    assert decide(facts(start()), POLICY) == Watch()
    assert decide(facts(start(), cancelled=True), POLICY) == Watch(), "it is asked to end, and ends by itself"


def test_an_order_that_nobody_took_is_taken_back_before_another_is_given() -> None:
    waiting = start(driver=None)
    assert decide(facts(waiting, life=Life.COMING), POLICY) == Watch()
    assert decide(facts(waiting, life=Life.NOBODY), POLICY) == Revoke(1)
    revoked = start(driver=DriverRecord(0, "", "here", 5, revoked_by="s2"))
    assert decide(facts(revoked, life=Life.GONE), POLICY) == OrderStart(2, 0)
    assert decide(facts(revoked, life=Life.GONE, cancelled=True), POLICY) == Close("CANCELED")


def test_a_dead_driver_is_noted_then_started_again_after_a_delay() -> None:
    assert decide(facts(start(), life=Life.GONE), POLICY) == NoteDeath(1)
    assert decide(facts(died(1), life=Life.GONE), POLICY) == OrderStart(2, 1_100)
    assert decide(facts(died(1), life=Life.GONE, cancelled=True), POLICY) == Close("CANCELED")


def test_too_many_deaths_fail_the_job() -> None:
    decision = decide(facts(died(1), died(2), died(3), life=Life.GONE), POLICY)
    assert decision == Close("FAILED", "it died; its driver was started 3 times, which is the limit")
    assert isinstance(decide(facts(died(1), life=Life.GONE), NoRestart()), Close)


def test_a_driver_that_lost_spark_is_started_again() -> None:
    lost = start(end=DriverEnd("FAILED", 1, 50, "Spark is gone", again=True))
    assert decide(facts(lost, life=Life.GONE), POLICY) == OrderStart(2, 150)


def test_a_job_without_checkpoints_is_not_run_again_on_another_host() -> None:
    decision = decide(facts(died(1), life=Life.GONE, here=False, resumable=False), POLICY)
    assert isinstance(decision, Close) and decision.status == "FAILED" and "no checkpoints" in decision.problem
    assert isinstance(decide(facts(died(1), life=Life.GONE, here=False), POLICY), OrderStart)
