"""Gathers what `decide` must know."""

from __future__ import annotations

from headwater.runtime.epoch.decisions import Facts, Pace
from headwater.runtime.job.coordinator import Coordinator


def gather_facts(coordinator: Coordinator, pace: Pace, *, micro_batch: bool = False) -> Facts:
    """Return what is known between two epochs. Looks for new splits, and gives up what takes too long."""
    coordinator.wakeup.clear()  # before looking: whatever comes now ends the next wait
    coordinator.checkpoints.give_up_late()
    now_ms = coordinator.stamp()
    coordinator.sources.discover(now_ms)
    return Facts(
        now_ms=now_ms,
        pace=pace.resident() if coordinator.is_resident else pace,
        last_epoch_ms=coordinator.last.now_ms,
        dry_since_ms=coordinator.dry_since_ms,
        cancelled=coordinator.cancelled,
        asked=bool(coordinator.requests),
        micro_batch=micro_batch,
        next_timer_ms=coordinator.partitions.next_timer_ms,
        batch_mode=coordinator.plan.batch_mode,
        sources=coordinator.sources.facts(now_ms, watching=coordinator.is_watching),
        checkpoint=coordinator.checkpoints.facts(coordinator.last, now_ms),
    )
