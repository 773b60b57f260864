"""Several sinks commit side by side; one that gives up does not keep the others from ending."""

from __future__ import annotations

import pickle
import threading
from typing import Any

import pytest

from headwater.common.connector import Committer
from headwater.common.errors import CheckpointError, UserCodeError
from headwater.runtime.epoch.restart_policy import FixedDelay, NoRestart, RestartPolicy
from headwater.runtime.job.committers import SinkCommitters
from tests.unit.runtime.test_coordinator import plan_of


class Recording(Committer):
    """Writes down its calls; `problems` are raised first, one per call."""

    def __init__(self, concurrency: int = 1) -> None:
        self.concurrency = concurrency
        self.calls: list[list[Any]] = []
        self.threads: set[int] = set()
        self.problems: list[Exception] = []
        self.meeting: threading.Barrier | None = None

    def commit(self, committables: list[Any]) -> None:
        self.calls.append(committables)
        self.threads.add(threading.get_ident())
        if self.meeting is not None:
            self.meeting.wait(60)
        if self.problems:
            raise self.problems.pop(0)


def committers(policy: RestartPolicy | None = None, **sinks: Recording) -> SinkCommitters:
    made = SinkCommitters(plan_of(lambda env: env.from_collection([1])), policy or NoRestart())
    made._committers = {uid: (f"sink {uid}", committer) for uid, committer in sinks.items()}
    return made


def output(**sinks: list[Any]) -> dict[str, list[bytes]]:
    return {uid: [pickle.dumps(item) for item in items] for uid, items in sinks.items()}


def test_one_sink_commits_in_the_callers_thread_in_order() -> None:
    only = Recording()
    committers(a=only).commit(output(a=[3, 1, 2]))
    assert only.calls == [[3, 1, 2]]
    assert only.threads == {threading.get_ident()}


def test_several_sinks_commit_at_the_same_time() -> None:
    sinks = {uid: Recording() for uid in "abc"}
    meeting = threading.Barrier(3)
    for each in sinks.values():
        each.meeting = meeting
    made = committers(**sinks)
    made.commit(output(a=[1, 2], b=[3], c=[4]))
    assert [each.calls for each in sinks.values()] == [[[1, 2]], [[3]], [[4]]]
    made.close()


def test_a_committer_that_allows_it_gets_its_output_in_parts() -> None:
    only = Recording(concurrency=3)
    only.meeting = threading.Barrier(3)
    made = committers(a=only)
    made.commit(output(a=[1, 2, 3, 4, 5]))
    assert sorted(only.calls) == [[1], [2, 3], [4, 5]]
    only.meeting = None
    made.commit(output(a=[6]))
    assert only.calls[3:] == [[6]]
    made.close()


def test_one_that_fails_is_raised_when_the_others_have_ended() -> None:
    good, bad = Recording(), Recording()
    bad.problems = [OSError("the sink is away")]
    for failing, other in (("a", "b"), ("b", "a")):
        bad.problems = [OSError("the sink is away")]
        made = committers(**dict(sorted({failing: bad, other: good}.items())))
        with pytest.raises(UserCodeError, match=rf"sink {failing} \(commit\).*the sink is away"):
            made.commit(output(a=[1], b=[2]))
        made.close()
    assert len(good.calls) == 2


def test_of_two_that_fail_both_are_told() -> None:
    first, second = Recording(), Recording()
    first.problems, second.problems = [CheckpointError("file 1 is damaged")], [CheckpointError("file 2 is damaged")]
    first.meeting = second.meeting = threading.Barrier(2)
    made = committers(a=first, b=second)
    with pytest.raises(CheckpointError, match=r"file . is damaged") as caught:
        made.commit(output(a=[1], b=[2]))
    told = [str(caught.value), *caught.value.__notes__]
    assert sorted(text.removeprefix("Also: ") for text in told) == ["file 1 is damaged", "file 2 is damaged"]
    made.close()


def test_each_sink_has_its_own_tries() -> None:
    """Two that are away at the same time are asked as often as one."""
    sinks = {uid: Recording() for uid in "ab"}
    for each in sinks.values():
        each.problems = [TimeoutError("away")] * 3
    made = committers(FixedDelay(attempts=3, delay_ms=0), **sinks)
    made.commit(output(a=[1], b=[2]))
    assert [len(each.calls) for each in sinks.values()] == [4, 4]
    for each in sinks.values():
        each.problems = [TimeoutError("away")] * 3
    made.commit(output(a=[1], b=[2]))  # after a success, tries are counted anew
    made.close()


def test_a_sink_is_not_asked_again_once_another_gave_up() -> None:
    patient, broken = Recording(), Recording()
    patient.problems = [TimeoutError("away")] * 100
    broken.problems = [CheckpointError("file 1 is damaged")]
    waiting = threading.Event()
    made = committers(FixedDelay(attempts=1000, delay_ms=0), a=patient, b=broken)
    made._pause = lambda reason, delay_ms: waiting.wait(0.01) and None
    with pytest.raises(CheckpointError, match="file 1 is damaged") as caught:
        made.commit(output(a=[1], b=[2]))
    assert "sink a (commit" in caught.value.__notes__[0]
    assert len(patient.calls) < 100
    made.close()
