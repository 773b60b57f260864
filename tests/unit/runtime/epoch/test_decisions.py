"""What the driver does next, case by case."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from headwater.runtime.epoch.decisions import (
    Cancel,
    CheckpointFacts,
    Facts,
    Finish,
    GiveUp,
    GoBack,
    Run,
    Serve,
    Settle,
    TryAgain,
    Wait,
    decide,
    decide_after_failure,
)
from headwater.runtime.epoch.failure import AttemptFailedError, FailureReason
from headwater.runtime.epoch.restart_policy import FixedDelay, NoRestart

NOTHING = Facts(now_ms=1_000, last_epoch_ms=900, checkpoint=CheckpointFacts(due=False))
LOST = AttemptFailedError("the slot is gone", FailureReason.PROCESS_LOST)
STATE_LOST = AttemptFailedError("state is gone", FailureReason.STATE_LOST)


def test_with_nothing_to_do_it_waits() -> None:
    assert decide(NOTHING) == Wait()


@pytest.mark.parametrize(
    "facts",
    [
        replace(NOTHING, readable=True),
        replace(NOTHING, next_timer_ms=1_000),
        replace(NOTHING, tick_ms=100),
        replace(NOTHING, checkpoint=CheckpointFacts(in_flight=True, due=False)),
    ],
)
def test_input_timers_ticks_and_a_checkpoint_in_flight_call_for_an_epoch(facts: Facts) -> None:
    assert decide(facts) == Run(cut=False)


def test_timers_and_ticks_wait_for_their_time() -> None:
    assert decide(replace(NOTHING, next_timer_ms=1_001, tick_ms=101)) == Wait()


def test_a_checkpoint_that_is_due_needs_an_epoch_only_if_there_is_something_new() -> None:
    due = CheckpointFacts(due=True)
    assert decide(replace(NOTHING, checkpoint=due)) == Wait()
    assert decide(replace(NOTHING, checkpoint=replace(due, behind=True))) == Run(cut=True)
    assert decide(replace(NOTHING, checkpoint=due, readable=True)) == Run(cut=True)


def test_a_checkpoint_that_somebody_waits_for_needs_an_epoch_in_any_case() -> None:
    requested = CheckpointFacts(due=False, requested=True)
    assert decide(replace(NOTHING, checkpoint=requested)) == Run(cut=True)


def test_at_most_one_checkpoint_is_in_flight() -> None:
    checkpoint = CheckpointFacts(in_flight=True, due=True, requested=True, behind=True)
    assert decide(replace(NOTHING, checkpoint=checkpoint, readable=True)) == Run(cut=False)


def test_batch_mode_cuts_no_checkpoint_on_the_way() -> None:
    facts = replace(NOTHING, batch_mode=True, readable=True, checkpoint=CheckpointFacts(due=True, behind=True))
    assert decide(facts) == Run(cut=False)


def test_a_job_whose_input_has_ended_settles_its_checkpoint_then_finishes() -> None:
    assert decide(replace(NOTHING, exhausted=True)) == Finish()
    assert decide(replace(NOTHING, exhausted=True, checkpoint=CheckpointFacts(in_flight=True))) == Settle()


def test_a_cancelled_job_does_nothing_else_and_requests_come_before_epochs() -> None:
    for asked, exhausted, readable in product((False, True), repeat=3):
        facts = replace(NOTHING, asked=asked, exhausted=exhausted, readable=readable)
        assert decide(replace(facts, cancelled=True)) == Cancel()
        if asked:
            assert decide(facts) == Serve()


def test_a_lost_process_is_tried_again_and_lost_state_goes_back() -> None:
    policy = FixedDelay(3, 50)
    assert decide_after_failure(LOST, [7], policy, can_go_back=False) == TryAgain(50)
    assert decide_after_failure(STATE_LOST, [7], policy, can_go_back=True) == GoBack(50)


def test_lost_state_without_a_checkpoint_ends_the_job() -> None:
    decision = decide_after_failure(STATE_LOST, [7], FixedDelay(3, 50), can_go_back=False)
    assert isinstance(decision, GiveUp) and "execution.checkpointing.dir" in decision.why


def test_the_restart_policy_has_the_last_word() -> None:
    decision = decide_after_failure(LOST, [1, 2], NoRestart(), can_go_back=True)
    assert isinstance(decision, GiveUp) and "failed 2 times" in decision.why and "the slot is gone" in decision.why
