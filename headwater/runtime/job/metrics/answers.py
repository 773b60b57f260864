"""What a running job answers to `metrics` and `why`: gathers the facts, then asks the pure parts."""

from __future__ import annotations

from typing import Any

from headwater.common.job_status import JobStatus
from headwater.common.watchdog import facts_of
from headwater.runtime.epoch.messages import SlotAddress
from headwater.runtime.job.coordinator import Coordinator
from headwater.runtime.job.metrics.findings import findings
from headwater.runtime.job.metrics.job_facts import Cause, JobFacts, SlotCondition, SourceState
from headwater.runtime.job.metrics.report import report
from headwater.runtime.job.metrics.why import diagnose
from headwater.runtime.slot.starter import local_host


def metrics_of(coordinator: Coordinator, status: JobStatus, since_ms: int = 0) -> dict[str, Any]:
    """Return all figures, and what is found in them. The history begins after `since_ms`, wall clock."""
    facts = facts_about(coordinator, status)
    answer = report(facts.figures, _job_figures(coordinator, facts), coordinator.progress.metrics, since_ms)
    return answer | {"findings": [each.as_dict() for each in findings(facts)]}


def why_of(coordinator: Coordinator | None, status: JobStatus) -> list[dict[str, Any]]:
    """Return why there is no output, the most likely cause first."""
    if coordinator is None:
        causes = [Cause("starting", "the job has not begun yet: it waits for Spark", "wait")]
    else:
        causes = diagnose(facts_about(coordinator, status))
    return [each.as_dict() for each in causes]


def facts_about(coordinator: Coordinator, status: JobStatus) -> JobFacts:
    """Gather what is known now. Any thread may call this; the job goes on meanwhile."""
    checkpoints, now_ms = coordinator.checkpoints, int(coordinator.clock.now_ms())
    in_flight = checkpoints.in_flight
    return JobFacts(
        figures=coordinator.metrics.snapshot(now_ms),
        status=status,
        last_failure=_last_failure(coordinator),
        commit_problem=coordinator.metrics.commit_problem,
        checkpoints=tuple(checkpoints.history),
        checkpoint_interval_ms=checkpoints.schedule.interval_ms,
        checkpoint_under_way_ms=None if in_flight is None else in_flight.age_ms(),
        eager_sinks=frozenset(coordinator.eager_sinks),
        sources={
            source.spec.id: SourceState(source.open_splits, source.exhausted) for source in coordinator.sources.splits
        },
        slots=tuple(_condition(address) for address in coordinator.slots() if address.host == local_host()),
    )


def _last_failure(coordinator: Coordinator) -> str | None:
    known = coordinator.progress.exceptions.as_dict()["entries"]
    return coordinator.progress.last_failure or (known[0]["message"] if known else None)


def _condition(address: SlotAddress) -> SlotCondition:
    """Look at a slot's process. Slots on other hosts cannot be seen from here."""
    process = facts_of(address.pid)
    return SlotCondition(
        address.place,
        address.host,
        address.pid,
        stopped=process is not None and process.state == "T",
        gone=process is None,
        swapped_bytes=_swapped_bytes(address.pid),
    )


def _swapped_bytes(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/status") as file:
            swapped = next((line.split()[1] for line in file if line.startswith("VmSwap:")), "0")
    except OSError:
        return 0
    return int(swapped) * 1024


def _job_figures(coordinator: Coordinator, facts: JobFacts) -> dict[str, float]:
    """Flink's figures of a job and its checkpoints."""
    completed = [each for each in facts.checkpoints if each.status == "completed"]
    progress = coordinator.progress
    found: dict[str, float] = {
        "numRestarts": progress.restarts,
        "numRewinds": progress.rewinds,
        "numberOfCompletedCheckpoints": coordinator.checkpoints.completed,
        "numberOfFailedCheckpoints": coordinator.checkpoints.failed,
        "totalNumberOfCheckpoints": coordinator.checkpoints.completed + coordinator.checkpoints.failed,
        "numberOfInProgressCheckpoints": int(facts.checkpoint_under_way_ms is not None),
        "stateEntries": progress.state_entries,
    }
    if completed:
        last = completed[-1]
        found |= {
            "lastCheckpointDuration": round(last.duration_ms, 3),
            "lastCheckpointSize": last.delta_bytes,
            "lastCheckpointFullSize": last.full_bytes,
            "lastCompletedCheckpointId": last.epoch,
        }
    return found
