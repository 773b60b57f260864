"""Why is there no output? From facts to named causes, the most likely first. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from headwater.common.job_status import JobStatus
from headwater.runtime.job.metrics.job_facts import Cause, JobFacts, shown_duration
from headwater.runtime.job.metrics.record_search import QUIET_MS, RecordSearch

LONG_EPOCH = 10
"""An epoch that takes so many times as long as usual, and `QUIET_MS` at least, hangs."""
NOTHING_WRONG = "nothing-wrong"


def diagnose(facts: JobFacts) -> list[Cause]:
    """Return the causes. A job whose output flows gets one that says so."""
    grave = [*_not_running(facts), *_hanging(facts)]
    if grave:
        return grave
    search = RecordSearch(facts)
    found = [*_invisible(facts), *(cause for sink in search.quiet_sinks() for cause in search.explain_sink(sink))]
    return list(dict.fromkeys(found)) or [_nothing_wrong(facts)]


def _not_running(facts: JobFacts) -> Iterator[Cause]:
    failure = facts.last_failure or "unknown"
    empty = RecordSearch(facts).empty_sources()
    waits = facts.figures.epoch < 0 and facts.figures.epoch_under_way_ms is None
    if facts.status is JobStatus.RUNNING and waits and empty:
        yield from empty
    elif facts.status is JobStatus.CREATED or (facts.status is JobStatus.RUNNING and waits):
        yield Cause("starting", "the job has not begun its first epoch yet: it waits for Spark and its slots", "wait")
    elif facts.status is JobStatus.RESTARTING:
        yield Cause("restarting", f"the job restarts again and again: {failure}", "cure what its last failure says")
    elif facts.status is not JobStatus.RUNNING:
        reason = f": {failure}" if facts.status is JobStatus.FAILED else ""
        yield Cause("ended", f"the job does not run any more, it is {facts.status.name}{reason}", "start it again")


def _hanging(facts: JobFacts) -> Iterator[Cause]:
    if facts.commit_problem is not None:
        yield Cause(
            "sink-commit-failing",
            f"records were written, but cannot be made visible: {facts.commit_problem}",
            "cure the sink; the job commits again by itself, as its restart strategy allows",
        )
    for slot in facts.slots:
        if slot.stopped:
            yield Cause(
                "slot-stopped",
                f"the slot of stage {slot.place.stage}, partition {slot.place.partition} (process {slot.pid} on host "
                f"{slot.host}) is stopped, and the whole epoch waits for it",
                f"continue it (kill -CONT {slot.pid}); else it is replaced when it has not answered for long enough",
                subtask=slot.place.partition,
            )
    under_way_ms, usual_ms = facts.figures.epoch_under_way_ms, facts.figures.typical_epoch_ms
    if under_way_ms is not None and under_way_ms > max(QUIET_MS, LONG_EPOCH * usual_ms):
        usual = f"; usually it takes {shown_duration(usual_ms)}" if usual_ms else ""
        yield Cause(
            "epoch-hangs",
            f"the epoch under way has lasted {shown_duration(under_way_ms)}{usual}: a function, a source or Spark does "
            "not get on",
            "look at the stacks of the slots (py-spy dump) and at Spark's free cores",
        )


def _invisible(facts: JobFacts) -> Iterator[Cause]:
    """Output that waits for a checkpoint."""
    figures = facts.figures
    visible_ms = -1 if figures.visible_ms is None else figures.visible_ms
    waiting = [
        (ms, uid)
        for uid in facts.figures.graph.sink_uids
        if uid not in facts.eager_sinks and (ms := figures.flows[uid].last_in_ms) is not None and ms > visible_ms
    ]
    if not waiting:
        return
    name = figures.graph.names[min(waiting)[1]]
    last = facts.checkpoints[-1] if facts.checkpoints else None
    if last is not None and last.status == "failed":
        yield Cause(
            "checkpoint-failing",
            f"'{name}' has records that no checkpoint contains, so they stay invisible: the last checkpoint failed: "
            f"{last.reason}",
            "cure what it says; the next checkpoint contains the output of the failed ones",
            name,
        )
    elif facts.checkpoint_under_way_ms is not None and facts.checkpoint_under_way_ms > QUIET_MS:
        yield Cause(
            "checkpoint-under-way",
            f"'{name}' has records that become visible when the checkpoint under way is complete; it has taken "
            f"{shown_duration(facts.checkpoint_under_way_ms)} so far",
            "a faster store for checkpoints; headwater checkpoints shows which partition is slow",
            name,
        )
    elif figures.now_ms - (visible_ms if visible_ms >= 0 else figures.started_ms) > QUIET_MS:
        yield Cause(
            "waiting-for-checkpoint",
            f"'{name}' has records that become visible with the next checkpoint: one is due every "
            f"{shown_duration(facts.checkpoint_interval_ms)}",
            "a shorter execution.checkpointing.interval",
            name,
        )


def _nothing_wrong(facts: JobFacts) -> Cause:
    flows = facts.figures.flows
    last = max((ms for uid in facts.figures.graph.sink_uids if (ms := flows[uid].last_in_ms) is not None), default=None)
    when = "" if last is None else f": a sink got its last record {shown_duration(facts.figures.now_ms - last)} ago"
    return Cause(
        NOTHING_WRONG,
        f"nothing wrong: output flows{when}" if when else "nothing wrong: the job has just begun",
        "nothing to do",
    )
