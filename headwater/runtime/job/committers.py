"""Makes the output of completed epochs visible, and asks a sink again that cannot do so just now."""

from __future__ import annotations

import contextlib
import pickle
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from headwater.checkpoint.manifest import HeldRecord
from headwater.checkpoint.output_files import StoredOutputFiles
from headwater.checkpoint.paths import CheckpointLayout
from headwater.common.connector import CheckpointMoment, Committer, CommitterContext
from headwater.common.errors import ExternalSystemError, HeadwaterError, LocalDiskError, UserCodeError
from headwater.graph.plan import JobPlan
from headwater.runtime.epoch.restart_policy import NoRestart, RestartPolicy

_PASSING: Final = (LocalDiskError, ExternalSystemError)
"""Errors of ours that time may cure."""

MAX_THREADS: Final = 8
"""How many commits run at the same time, beside the one in the caller's thread."""


@dataclass(frozen=True)
class _CommitCall:
    """One call of a committer."""

    key: tuple[str, int]
    name: str
    committer: Committer
    items: list[bytes]


class SinkCommitters:
    """The committers of all sinks of a job, in the driver. Made at start, so that a bad sink fails early.

    `pause(reason, delay_ms)` waits before a commit is tried again. It raises if the job must not go on waiting.
    """

    def __init__(
        self,
        plan: JobPlan,
        policy: RestartPolicy | None = None,
        pause: Callable[[str, int], None] = lambda reason, delay_ms: None,
        job_id: str = "job",
        layout: CheckpointLayout | None = None,
        spark_session: Callable[[], Any] | None = None,
    ) -> None:
        self._job_id = job_id
        self._layout = layout
        self._spark_session = spark_session
        self._opened = False
        self._policy = policy or NoRestart()
        self._pause = pause
        self._failures_ms: dict[tuple[str, int], list[int]] = {}  # {(sink uid, part): when it could not commit}
        self._threads: ThreadPoolExecutor | None = None
        self._committers: dict[str, tuple[str, Committer]] = {}
        self.eager: set[str] = set()
        """Uids of the sinks whose output need not wait for a checkpoint."""
        for stage in plan.stages:
            for operator in stage.operators:
                if operator.sink is not None:
                    self._committers[operator.uid] = (operator.name, operator.sink.create_committer())
                    if operator.sink.eager:
                        self.eager.add(operator.uid)
        self._selecting = [
            uid for uid, (_, each) in self._committers.items() if type(each).select is not Committer.select
        ]
        """Uids of the sinks that may hold output back."""

    def open(self, resumed_epoch: int = -1) -> None:
        """Tell all committers whose output they commit. `resumed_epoch` is the checkpoint that the job resumes from.

        Only the first call counts.
        """
        if self._opened:
            return
        self._opened = True
        for uid, (name, committer) in self._committers.items():
            files = None if self._layout is None else StoredOutputFiles(self._layout, uid)
            try:
                committer.open(CommitterContext(self._job_id, name, uid, files, resumed_epoch, self._spark_session))
            except HeadwaterError:
                raise
            except Exception as error:
                raise UserCodeError.from_exception(error, name, "the start of its committer", resumed_epoch) from error

    def select(
        self, prepared: Mapping[str, list[bytes]], held: Mapping[str, HeldRecord], moment: CheckpointMoment
    ) -> tuple[dict[str, list[bytes]], dict[str, HeldRecord]]:
        """Ask each sink what a checkpoint makes visible. Return that, and what it holds back."""
        self.open()
        due = {uid: list(items) for uid, items in prepared.items() if uid not in self._selecting}
        still_held: dict[str, HeldRecord] = {}
        for uid, record in held.items():
            if uid not in self._selecting:  # the sink held output back before the program was changed
                due[uid] = [*record.items, *due.get(uid, [])]
        for uid in self._selecting:
            before = held[uid].items if uid in held else []
            if not before and not prepared.get(uid):
                continue
            name, committer = self._committers[uid]
            try:
                chosen = committer.select(_loaded(prepared.get(uid, [])), _loaded(before), moment)
            except HeadwaterError:
                raise
            except Exception as error:
                raise UserCodeError.from_exception(error, name, "the choice of its output", moment.epoch) from error
            if chosen.due:
                due[uid] = _dumped(chosen.due)
            if chosen.held:
                still_held[uid] = HeldRecord(_dumped(chosen.held), chosen.again_ms)
        return due, still_held

    def commit(self, committables: Mapping[str, list[bytes]]) -> None:
        """Commit what a durable manifest names. Idempotent, because committers are.

        Sinks commit side by side; so do parts of one sink's output, if its committer allows it. A sink that raises is
        asked again, as the restart policy says: the manifest stands, so there is no other way to go on. What headwater
        itself finds wrong with the output is not cured by time. When all have ended, this raises the error of the sink
        that gave up first; the others are not asked again after that.
        """
        self.open()
        work = [task for uid, items in committables.items() for task in self._tasks(uid, items)]
        if len(work) == 1:
            self._commit(work[0], [])
        elif work:
            self._commit_side_by_side(work)
        if self._policy.forgets_on_success:
            self._failures_ms.clear()

    def _tasks(self, uid: str, items: list[bytes]) -> list[_CommitCall]:
        name, committer = self._committers[uid]
        parts = max(1, min(committer.concurrency, len(items)))
        bounds = [len(items) * part // parts for part in range(parts + 1)]
        return [
            _CommitCall((uid, part), name, committer, items[first:stop])
            for part, (first, stop) in enumerate(pairwise(bounds))
        ]

    def _commit_side_by_side(self, work: list[_CommitCall]) -> None:
        if self._threads is None:
            self._threads = ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="commit")
        errors: list[Exception] = []
        others = [self._threads.submit(self._commit, task, errors) for task in work[1:]]
        with contextlib.suppress(Exception):  # it is in `errors`
            self._commit(work[0], errors)
        for other in others:
            other.exception()
        if errors:
            for error in errors[1:]:
                errors[0].add_note(f"Also: {error}")
            raise errors[0]

    def _commit(self, task: _CommitCall, errors: list[Exception]) -> None:
        """Commit until it is done. `errors` are those of all tasks that gave up; after the first, all do."""
        try:
            self._commit_with_retries(task, errors)
        except Exception as error:
            errors.append(error)
            raise

    def _commit_with_retries(self, task: _CommitCall, errors: Sequence[Exception]) -> None:
        tried = 0
        while True:
            tried += 1
            try:
                task.committer.commit(_loaded(task.items))
                return
            except Exception as error:
                may_pass = isinstance(error, _PASSING) or not isinstance(error, HeadwaterError)
                delay_ms = self._next_delay_ms(task.key) if may_pass and not errors else None
                if delay_ms is not None:
                    self._pause(f"sink '{task.name}' could not commit: {type(error).__name__}: {error}", delay_ms)
                elif isinstance(error, HeadwaterError):
                    raise
                else:
                    times = f", tried {tried} times" if tried > 1 else ""
                    raise UserCodeError.from_exception(
                        error, f"{task.name} (commit{times})", f"{len(task.items)} committables", -1
                    ) from error

    def _next_delay_ms(self, key: tuple[str, int]) -> int | None:
        now_ms = int(time.monotonic() * 1000)
        failures_ms = self._failures_ms.setdefault(key, [])
        failures_ms.append(now_ms)
        return self._policy.next_delay_ms(failures_ms, now_ms)

    def clean_up(self, job_id: str, check: Callable[[], None], held: Mapping[str, HeldRecord] | None = None) -> None:
        """Let sinks delete what dead attempts left, but not what is `held`. No attempt of the job may be running.

        `check` raises if another driver has taken over. It is called after the search and before the deletion:
        otherwise a driver that wakes up late would delete what the next driver has prepared.
        """
        self.open()
        for uid, record in (held or {}).items():
            self._committers[uid][1].holding(_loaded(record.items))
        found = [(committer, committer.find_leftovers(job_id)) for _, committer in self._committers.values()]
        if any(leftovers for _, leftovers in found):
            check()
        for committer, leftovers in found:
            committer.delete_leftovers(leftovers)

    def close(self) -> None:
        if self._threads is not None:
            self._threads.shutdown()
        for _, committer in self._committers.values():
            committer.close()


def _loaded(items: Sequence[bytes]) -> list[Any]:
    return [pickle.loads(item) for item in items]


def _dumped(committables: Sequence[Any]) -> list[bytes]:
    return [pickle.dumps(item, 5) for item in committables]
