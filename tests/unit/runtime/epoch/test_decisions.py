"""What the driver does next, case by case."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from headwater.runtime.epoch.decisions import (
    IDLE_MS,
    Cancel,
    CheckpointFacts,
    Decision,
    Facts,
    Finish,
    GiveUp,
    GoBack,
    Pace,
    Run,
    Serve,
    Settle,
    SourceFacts,
    TryAgain,
    Wait,
    decide,
    decide_after_failure,
)
from headwater.runtime.epoch.failure import AttemptFailedError, FailureReason
from headwater.runtime.epoch.restart_policy import FixedDelay, NoRestart

PACE = Pace(epoch_ms=500, poll_ms=50)
NOT_DUE = CheckpointFacts(due=False)
NOTHING = Facts(now_ms=1_000, pace=PACE, last_epoch_ms=900, checkpoint=NOT_DUE)
READABLE = SourceFacts(readable=True)
LOST = AttemptFailedError("the slot is gone", FailureReason.PROCESS_LOST)
STATE_LOST = AttemptFailedError("state is gone", FailureReason.STATE_LOST)


@pytest.mark.parametrize(
    ("facts", "decision"),
    [
        # Nothing to do.
        (NOTHING, Wait(1_000 + IDLE_MS)),
        (replace(NOTHING, sources=SourceFacts(discovery_ms=1_200)), Wait(1_200)),
        # Input.
        (replace(NOTHING, sources=READABLE), Run(cut=False)),
        (replace(NOTHING, sources=READABLE, dry_since_ms=970), Wait(1_020)),
        (replace(NOTHING, sources=READABLE, dry_since_ms=950), Run(cut=False)),
        # Input with a rate limit: an epoch in each `epoch_ms`, if there is nothing else.
        (replace(NOTHING, sources=SourceFacts(rate_allows_ms=1_000)), Wait(1_400)),
        (replace(NOTHING, sources=SourceFacts(rate_allows_ms=1_450)), Wait(1_450)),
        (replace(NOTHING, sources=SourceFacts(rate_allows_ms=1_000), last_epoch_ms=500), Run(cut=False)),
        (replace(NOTHING, sources=SourceFacts(rate_allows_ms=1_000), last_epoch_ms=500, dry_since_ms=970), Wait(1_020)),
        (replace(NOTHING, sources=SourceFacts(readable=True, rate_allows_ms=1_450)), Run(cut=False)),
        # Time: it calls whether sources are dry or not.
        (replace(NOTHING, next_timer_ms=1_001), Wait(1_001)),
        (replace(NOTHING, next_timer_ms=1_000, dry_since_ms=999), Run(cut=False)),
        (replace(NOTHING, pace=replace(PACE, tick_ms=500), dry_since_ms=999), Wait(1_400)),
        (replace(NOTHING, pace=replace(PACE, tick_ms=500), last_epoch_ms=500, dry_since_ms=999), Run(cut=False)),
        # A checkpoint that is due needs an epoch only if there is something new.
        (replace(NOTHING, checkpoint=CheckpointFacts(due=True)), Wait(1_000 + IDLE_MS)),
        (replace(NOTHING, checkpoint=CheckpointFacts(due=True, behind=True), dry_since_ms=999), Run(cut=True)),
        (replace(NOTHING, checkpoint=CheckpointFacts(due=False, due_ms=1_300, behind=True)), Wait(1_300)),
        (replace(NOTHING, checkpoint=CheckpointFacts(due=False, due_ms=1_300)), Wait(1_000 + IDLE_MS)),
        (replace(NOTHING, checkpoint=CheckpointFacts(due=True), sources=READABLE), Run(cut=True)),
        # One that somebody waits for needs an epoch in any case.
        (replace(NOTHING, checkpoint=CheckpointFacts(due=False, requested=True), dry_since_ms=999), Run(cut=True)),
        # One in flight needs epochs, but not without a pause; and it is the only one.
        (replace(NOTHING, checkpoint=CheckpointFacts(in_flight=True, due=False)), Run(cut=False)),
        (replace(NOTHING, checkpoint=CheckpointFacts(in_flight=True, requested=True), dry_since_ms=970), Wait(1_020)),
        (
            replace(NOTHING, checkpoint=CheckpointFacts(in_flight=True, requested=True, behind=True), sources=READABLE),
            Run(cut=False),
        ),
        # Batch mode cuts none on the way.
        (
            replace(NOTHING, batch_mode=True, checkpoint=CheckpointFacts(due=True, behind=True), sources=READABLE),
            Run(cut=False),
        ),
        # The end of the input.
        (replace(NOTHING, sources=SourceFacts(exhausted=True)), Finish()),
        (replace(NOTHING, sources=SourceFacts(exhausted=True), checkpoint=CheckpointFacts(in_flight=True)), Settle()),
        # A micro-batch of Spark is an epoch, and its checkpoint is complete before Spark goes on.
        (replace(NOTHING, micro_batch=True, sources=SourceFacts(exhausted=True)), Run(cut=True, wait=True)),
        (
            replace(NOTHING, micro_batch=True, checkpoint=CheckpointFacts(in_flight=True)),
            Run(cut=False, wait=True),
        ),
    ],
)
def test_what_comes_next(facts: Facts, decision: Decision) -> None:
    assert decide(facts) == decision


def test_a_cancelled_job_does_nothing_else_and_requests_come_before_epochs() -> None:
    for asked, exhausted, readable, micro_batch in product((False, True), repeat=4):
        sources = SourceFacts(exhausted=exhausted, readable=readable)
        facts = replace(NOTHING, asked=asked, sources=sources, micro_batch=micro_batch)
        assert decide(replace(facts, cancelled=True)) == Cancel()
        if asked:
            assert decide(facts) == Serve()


def test_a_wait_ends_in_the_future_and_at_least_every_second() -> None:
    for time_ms in (0, 999, 1_000, 1_001, 10_000):
        decision = decide(replace(NOTHING, sources=SourceFacts(discovery_ms=time_ms)))
        assert isinstance(decision, Wait) and 1_000 < decision.until_ms <= 1_000 + IDLE_MS


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
