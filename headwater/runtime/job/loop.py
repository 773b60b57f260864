"""The epoch loop for jobs without streaming DataFrames: gathers the facts and executes what `decide` says."""

from __future__ import annotations

from headwater.runtime.epoch.decisions import LAST, Cancel, Finish, Run, Serve, Settle, Wait, decide
from headwater.runtime.job.coordinator import Coordinator
from headwater.runtime.job.endings import JobCancelledError, WentBackError
from headwater.runtime.job.serving import serve_requests

POLL_MS = 100
"""How long to wait before asking sources again that had nothing."""


def run_epochs(coordinator: Coordinator, epoch_ms: int, *, ticks: bool) -> None:
    """Run epochs until the sources have ended. The last epoch carries the end of event time.

    With `ticks` the operators see time pass, with input or without.
    """
    while not coordinator.finished:
        try:
            _run_next(coordinator, epoch_ms, ticks=ticks)
        except WentBackError:
            continue


def _run_next(coordinator: Coordinator, epoch_ms: int, *, ticks: bool) -> None:
    facts = coordinator.facts(epoch_ms if ticks else None)
    match decide(facts):
        case Cancel():
            raise JobCancelledError
        case Serve():
            serve_requests(coordinator)
        case Settle():
            coordinator.settle_checkpoint()
        case Finish():
            coordinator.run_epoch(coordinator.plan_epoch(LAST, facts.now_ms))
        case Run() as run:
            _run_epoch(coordinator, run, facts.now_ms, epoch_ms)
        case Wait():
            coordinator.wait_cancelled(_poll_seconds(epoch_ms))


def _run_epoch(coordinator: Coordinator, run: Run, now_ms: int, epoch_ms: int) -> None:
    readable = coordinator.sources.readable(now_ms)
    plan = coordinator.plan_epoch(run, now_ms)
    records = coordinator.run_epoch(plan)
    if records == 0 and not plan.dataframes:
        coordinator.wait_cancelled(_poll_seconds(epoch_ms))
    elif readable and all(source.source.rate_per_second for source in readable):
        _pace(coordinator, now_ms, epoch_ms)


def _poll_seconds(epoch_ms: int) -> float:
    return min(POLL_MS, epoch_ms) / 1000


def _pace(coordinator: Coordinator, started_ms: int, epoch_ms: int) -> None:
    """Wait for the rest of the epoch's duration: shorter epochs gain nothing if all sources are rate-limited."""
    left_ms = started_ms + epoch_ms - coordinator.stamp()
    if left_ms > 0:
        coordinator.wait_cancelled(left_ms / 1000)
