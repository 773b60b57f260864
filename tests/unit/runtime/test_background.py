"""Work beside the thread that asked for it, and the fence that keeps late attempts out of a slot."""

from __future__ import annotations

import os
import threading
import time

import pytest

from headwater.runtime.background import THREADS, Threads
from headwater.runtime.epoch.messages import Attempt
from headwater.runtime.slot.fence import AttemptFence


def test_work_goes_on_beside_who_asked_for_it() -> None:
    gate = threading.Event()
    future = THREADS.start("upload", lambda: gate.wait(10) and threading.current_thread().name)
    with pytest.raises(TimeoutError):
        future.result(0)
    gate.set()
    assert future.result(10) == "upload"


def test_what_work_raises_is_raised_where_it_is_waited_for() -> None:
    def fails() -> None:
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space left"):
        THREADS.start("upload", fails).result(10)


def test_a_queue_does_one_thing_after_the_other() -> None:
    gate = threading.Event()
    done: list[int] = []
    queue = THREADS.queue("checkpoint")
    queue.submit(lambda: (gate.wait(10), done.append(1)))
    last = queue.submit(lambda: done.append(2))
    gate.set()
    last.result(10)
    queue.shutdown()
    assert done == [1, 2]


def test_a_fence_lets_each_attempt_in_once_and_none_that_is_older() -> None:
    fence = AttemptFence()
    assert fence.admits(Attempt(1, 4, 0))
    assert not fence.admits(Attempt(1, 4, 0)), "twice"
    assert fence.admits(Attempt(1, 4, 1)) and not fence.is_newest(Attempt(1, 4, 0))
    assert not fence.admits(Attempt(1, 3, 9)), "an earlier epoch"
    assert fence.admits(Attempt(2, 0, 0)), "a newer driver counts its epochs anew"
    assert not fence.admits(Attempt(1, 99, 0)), "the driver before it"


def test_a_thread_that_is_done_takes_the_next_work() -> None:
    threads = Threads()
    first = threads.start("one", threading.get_ident).result(10)
    deadline = time.monotonic() + 10
    while not threads._idle:
        assert time.monotonic() < deadline
        time.sleep(0.001)
    assert threads.start("two", threading.get_ident).result(10) == first


def test_work_that_hangs_holds_up_no_other() -> None:
    threads, go_on = Threads(), threading.Event()
    hanging = threads.start("one", lambda: go_on.wait(30))
    assert threads.start("two", lambda: 2).result(10) == 2
    go_on.set()
    assert hanging.result(10)


def test_a_forked_process_starts_threads_of_its_own() -> None:
    threads = Threads()
    threads.start("one", lambda: None).result(10)
    deadline = time.monotonic() + 10
    while not threads._idle:
        assert time.monotonic() < deadline
        time.sleep(0.001)
    pid = os.fork()
    if pid == 0:
        try:
            os._exit(threads.start("two", lambda: 7).result(10))
        except BaseException:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
