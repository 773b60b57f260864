"""The epoch loop for jobs without streaming DataFrames: gathers the facts and executes what `decide` says."""

from __future__ import annotations

from headwater.runtime.epoch.decisions import LAST, Cancel, Finish, Pace, Run, Serve, Settle, Wait, decide
from headwater.runtime.job.coordinator import Coordinator
from headwater.runtime.job.endings import JobCancelledError, WentBackError
from headwater.runtime.job.facts import gather_facts
from headwater.runtime.job.serving import serve_requests


def run_epochs(coordinator: Coordinator, pace: Pace) -> None:
    """Run epochs until the sources have ended. The last epoch carries the end of event time."""
    while not coordinator.finished:
        try:
            _run_next(coordinator, pace)
        except WentBackError:
            continue


def _run_next(coordinator: Coordinator, pace: Pace) -> None:
    facts = gather_facts(coordinator, pace)
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
            coordinator.run_epoch(coordinator.plan_epoch(run, facts.now_ms))
        case Wait(until_ms):
            coordinator.wait(facts, until_ms)
