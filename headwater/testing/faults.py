"""Faults that strike a job in this process: at a step of an epoch, once, or as often as the test says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headwater.common.connector import CheckpointMoment, Committer, Selection, Sink, SinkWriter, WriterContext
from headwater.common.errors import ConfigurationError, short_repr
from headwater.common.ids import Place
from headwater.common.job_client import JobClient
from headwater.graph.plan import JobPlan
from headwater.runtime.epoch.failure import AttemptFailedError, FailureReason
from headwater.runtime.local.engine import InProcessEngine
from headwater.runtime.local.job import InProcessJob
from headwater.runtime.local.killed import Killed

STEPS = (
    "begin",
    "chunk-received",
    "processed",
    "snapshot-written",
    "acked",
    "manifest-written",
    "sink-committed",
)
"""The steps of an epoch, in order. The second to the fourth come once per partition; the last two only in epochs that
end with a checkpoint. If the job dies before `manifest-written`, the epoch does not count; after it, it does."""

_IN_THE_ATTEMPT = STEPS[:5]


class Fault:
    """Something that happens to a job. `fired` says how often it did."""

    def __init__(self, what: str, times: int = 1) -> None:
        if times < 1:
            raise ConfigurationError(f"times={times}: a fault that never fires tests nothing; expected 1 or more")
        self.what = what
        self.times = times
        self.fired = 0

    def reached(self, step: str, epoch: int, job: InProcessJob, engine: InProcessEngine) -> None:
        """The job is at `step` of `epoch`. Strike, or do nothing."""

    def __repr__(self) -> str:
        return f"<{self.what}, fired {self.fired} of {self.times} times>"


class FaultAtStep(Fault):
    """Strikes when a job reaches a step of an epoch."""

    def __init__(self, what: str, epoch: int, at: str, times: int = 1) -> None:
        if at not in STEPS:
            raise ConfigurationError(f"at={short_repr(at)}: no step of an epoch; expected one of {', '.join(STEPS)}")
        if not isinstance(epoch, int) or epoch < 0:
            raise ConfigurationError(f"epoch={short_repr(epoch)}: expected a number; the first epoch is 0")
        super().__init__(f"{what} at '{at}' of epoch {epoch}", times)
        self._epoch = epoch
        self._at = at

    def reached(self, step: str, epoch: int, job: InProcessJob, engine: InProcessEngine) -> None:
        if (step, epoch) == (self._at, self._epoch) and self.fired < self.times:
            self.fired += 1
            self.strike(job, engine)

    def strike(self, job: InProcessJob, engine: InProcessEngine) -> None:
        """Do it."""
        raise NotImplementedError


class JobCrash(FaultAtStep):
    """The driver and all slots die at once."""

    def __init__(self, epoch: int, at: str) -> None:
        super().__init__("the job's crash", epoch, at)

    def strike(self, job: InProcessJob, engine: InProcessEngine) -> None:
        raise Killed(f"{self.what}, as the test asked")


class SlotKill(FaultAtStep):
    """One slot dies, with all that it holds."""

    def __init__(self, operator: str, partition: int, epoch: int, at: str) -> None:
        super().__init__(f"the end of a slot of '{operator}' ({partition})", epoch, at)
        self._operator = operator
        self._partition = partition

    def strike(self, job: InProcessJob, engine: InProcessEngine) -> None:
        place = place_of(job.plan, self._operator, self._partition)
        engine.slots.kill(place)
        if self._at in _IN_THE_ATTEMPT[1:]:
            raise AttemptFailedError(f"{self.what}, as the test asked", FailureReason.PROCESS_LOST)


class AttemptFailure(FaultAtStep):
    """A process other than a slot dies: the attempt fails, and slots undo what they had begun."""

    def __init__(self, epoch: int, at: str, times: int) -> None:
        if at not in _IN_THE_ATTEMPT:
            raise ConfigurationError(
                f"at={short_repr(at)}: the attempt is over by then; expected one of {', '.join(_IN_THE_ATTEMPT)}"
            )
        super().__init__("a failed attempt", epoch, at, times)

    def strike(self, job: InProcessJob, engine: InProcessEngine) -> None:
        raise AttemptFailedError(f"{self.what}, as the test asked", FailureReason.PROCESS_LOST)


class Call(FaultAtStep):
    """No fault: calls the test."""

    def __init__(self, action: Callable[[JobClient], Any], epoch: int, at: str) -> None:
        super().__init__("a call of the test", epoch, at)
        self._action = action

    def strike(self, job: InProcessJob, engine: InProcessEngine) -> None:
        self._action(job.client)


class CommitFailure(Fault):
    """A sink's commit raises. The job must commit the same output again."""

    def __init__(self, sink: str | None, times: int) -> None:
        super().__init__(f"a failed commit of sink '{sink}'" if sink else "a failed commit", times)
        self.sink = sink

    def strike(self) -> None:
        """A commit begins. Raise, if it is one of those that fail."""
        if self.fired < self.times:
            self.fired += 1
            raise OSError(f"{self.what}, as the test asked")


class SinkThatFails(Sink):
    """A sink whose commit asks `failures` first. In the driver only: writers are those of the real sink."""

    def __init__(self, sink: Sink, failures: list[CommitFailure]) -> None:
        self._sink = sink
        self._failures = failures
        self.eager = sink.eager

    def create_writer(self, context: WriterContext) -> SinkWriter:
        return self._sink.create_writer(context)

    def create_committer(self) -> Committer:
        return _CommitterThatFails(self._sink.create_committer(), self._failures)


class _CommitterThatFails(Committer):
    def __init__(self, committer: Committer, failures: list[CommitFailure]) -> None:
        self._committer = committer
        self._failures = failures
        self.concurrency = committer.concurrency
        self.open = committer.open  # type: ignore[method-assign]
        self.holding = committer.holding  # type: ignore[method-assign]
        self.find_leftovers = committer.find_leftovers  # type: ignore[method-assign]
        self.delete_leftovers = committer.delete_leftovers  # type: ignore[method-assign]
        self.close = committer.close  # type: ignore[method-assign]

    def select(self, prepared: list[Any], held: list[Any], moment: CheckpointMoment) -> Selection:
        return self._committer.select(prepared, held, moment)

    def commit(self, committables: list[Any]) -> None:
        for failure in self._failures:
            failure.strike()
        self._committer.commit(committables)


def place_of(plan: JobPlan, operator: str, partition: int) -> Place:
    """Return where the slot of an operator is, which is known by its name or uid."""
    stateful = [spec for stage in plan.stages for spec in stage.operators if spec.needs_slot]
    found = [spec for spec in stateful if operator in (spec.uid, spec.name)]
    if not found:
        known = ", ".join(f"'{spec.name}'" for spec in stateful) or "none"
        raise ConfigurationError(f"job '{plan.name}' has no operator '{operator}' with a slot; it has {known}")
    if not 0 <= partition < found[0].parallelism:
        raise ConfigurationError(
            f"operator '{operator}' has no partition {partition}; expected 0 to {found[0].parallelism - 1}"
        )
    return Place(found[0].stage, partition)
