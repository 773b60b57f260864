"""The epoch loop for jobs without streaming DataFrames."""

from __future__ import annotations

from headwater.runtime.job.coordinator import Coordinator, JobCancelledError, WentBackError

POLL_MS = 100
"""How long to wait before asking sources again that had nothing."""


def run_epochs(coordinator: Coordinator, epoch_ms: int, *, ticks: bool) -> None:
    """Run epochs until the sources have ended. The last epoch carries the end of event time.

    An epoch runs if there is something to read, a processing-time timer is due, a checkpoint waits for an epoch, or
    (with `ticks`) the operators must see time pass. Otherwise the loop sleeps.
    """
    while not coordinator.finished:
        try:
            _run_until_finished(coordinator, epoch_ms, ticks=ticks)
        except WentBackError:
            continue


def _run_until_finished(coordinator: Coordinator, epoch_ms: int, *, ticks: bool) -> None:
    poll_ms = min(POLL_MS, epoch_ms)
    while not coordinator.finished:
        if coordinator.cancelled:
            raise JobCancelledError("the job was cancelled")
        coordinator.serve_requests()
        now_ms = coordinator.stamp()
        for source in coordinator.split_sources:
            source.discover(now_ms)
        batch_frames = {
            source.spec.id: source.dataframe
            for source in coordinator.dataframes
            if not source.streaming and not source.exhausted
        }
        if coordinator.all_exhausted():
            coordinator.settle_checkpoint()
            coordinator.run_epoch(coordinator.stamp(), final=True)
            return
        readable = [source for source in coordinator.split_sources if source.can_read(now_ms)]
        timer_due = coordinator.next_timer_ms is not None and coordinator.next_timer_ms <= now_ms
        time_passes = ticks and now_ms - coordinator.now_ms >= epoch_ms
        if not (readable or batch_frames or timer_due or time_passes or coordinator.checkpoint_is_waiting()):
            coordinator.wait_cancelled(poll_ms / 1000)
            continue
        records = coordinator.run_epoch(now_ms, dataframes=batch_frames)
        if records == 0 and not batch_frames:
            coordinator.wait_cancelled(poll_ms / 1000)
        elif readable and all(source.source.rate_per_second for source in readable):
            _pace(coordinator, now_ms, epoch_ms)


def _pace(coordinator: Coordinator, started_ms: int, epoch_ms: int) -> None:
    """Wait for the rest of the epoch's duration: shorter epochs gain nothing if all sources are rate-limited."""
    left_ms = started_ms + epoch_ms - coordinator.stamp()
    if left_ms > 0:
        coordinator.wait_cancelled(left_ms / 1000)
