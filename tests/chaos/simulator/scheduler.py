"""Everything that would be a process or a thread, in one seeded order.

An actor is a thread that runs only while it holds the baton, and there is one baton. It gives the baton back at `step`,
which every operation on the store and every named step of an epoch calls; who has it next is drawn from the seed. So
one seed is one history, whatever the machine does.
"""

from __future__ import annotations

import random
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any, TypeVar

_T = TypeVar("_T")

STEP_LIMIT = 100_000
FOREVER = 1 << 60


class Killed(BaseException):
    """The actor was killed, as with kill -9: nothing handles this, and nothing the actor does from here on counts."""


class StuckError(Exception):
    """Nobody can go on, or the history does not come to an end."""


class Actor:
    """One thread of the simulated world. `group` is who dies or sleeps together: 'driver-2', 'driver-2/slot-5'."""

    def __init__(self, name: str, group: str, work: Callable[[], object]) -> None:
        self.name = name
        self.group = group
        self.error: BaseException | None = None
        self.done = False
        self.killed = False
        self.wakes_at = 0
        self.condition: Callable[[], bool] | None = None
        self.deadline = FOREVER
        """In steps: when it stops waiting for its condition."""
        self.go = threading.Lock()
        self.go.acquire()
        self.work = work

    def belongs_to(self, group: str) -> bool:
        return self.group == group or self.group.startswith(group + "/")


class Scheduler:
    """Hands the baton round. `run` is called by the thread of the test, which is no actor."""

    def __init__(self, seed: int, patience: float) -> None:
        self._random = random.Random(f"schedule-{seed}")
        self._patience = patience
        """How likely it is that who has the baton keeps it for another step."""
        self._hub = threading.Lock()
        self._hub.acquire()
        self._actors: list[Actor] = []
        self.current: Actor | None = None
        self.steps = 0

    # --- for actors

    def step(self) -> None:
        """The actor has done one thing; others may go on before its next one. Raises `Killed` if it is dead."""
        actor = self.current
        if actor is None:
            return  # the test looks at the world
        if actor.killed:
            raise Killed
        self.steps += 1
        if self._random.random() >= self._patience or actor.wakes_at > self.steps:
            self._give_baton(actor)

    def pause(self, steps: int) -> None:
        """The actor does nothing until others have done `steps` steps."""
        assert self.current is not None
        self.current.wakes_at = self.steps + steps
        self._give_baton(self.current)

    def wait_until(self, condition: Callable[[], bool], patience: int = FOREVER) -> None:
        """The actor waits for others, until `condition` holds or they have done `patience` steps."""
        actor = self.current
        assert actor is not None
        if condition():
            return
        actor.condition, actor.deadline = condition, self.steps + patience
        self._give_baton(actor)

    def _give_baton(self, actor: Actor) -> None:
        self._hub.release()
        actor.go.acquire()
        actor.condition, actor.deadline = None, FOREVER
        if actor.killed:
            raise Killed

    # --- for whoever rules the world

    def spawn(self, name: str, group: str, work: Callable[[], object]) -> Actor:
        """A new actor, which gets the baton when it is drawn."""
        actor = Actor(name, group, work)
        self._actors.append(actor)
        threading.Thread(target=self._live, args=(actor,), name=name, daemon=True).start()
        return actor

    def _live(self, actor: Actor) -> None:
        actor.go.acquire()
        try:
            if not actor.killed:
                actor.work()
        except Killed:
            pass
        except BaseException as error:
            actor.error = error
        finally:
            actor.done = True
            self._hub.release()

    def kill(self, group: str) -> None:
        """End all actors of `group`. If one of them has the baton, it dies at its next step."""
        for actor in self._actors:
            if actor.belongs_to(group):
                actor.killed = True

    def freeze(self, group: str, steps: int) -> None:
        """Stop all actors of `group`, as SIGSTOP would, until `steps` steps were done by others."""
        for actor in self._actors:
            if actor.belongs_to(group):
                actor.wakes_at = max(actor.wakes_at, self.steps + steps)

    def alive(self, group: str) -> bool:
        return any(actor.belongs_to(group) for actor in self._actors)

    def run(self, between: Callable[[], None]) -> None:
        """Hand the baton round until no actor is left. `between` is called whenever it comes back."""
        between()
        while self._actors:
            self.steps += 1
            if self.steps > STEP_LIMIT:
                raise StuckError(f"no end after {STEP_LIMIT} steps: {self._names()}")
            ready = [actor for actor in self._actors if self._can_go_on(actor)]
            if not ready:
                later = min(max(self._wakes_at(actor), self.steps + 1) for actor in self._actors)
                if later >= FOREVER:
                    raise StuckError(f"everybody waits: {self._names()}")
                self.steps = later
                continue
            self.current = actor = self._random.choice(ready)
            actor.go.release()
            self._hub.acquire()
            self.current = None
            if actor.done:
                self._actors.remove(actor)
            between()

    def _can_go_on(self, actor: Actor) -> bool:
        if actor.killed:
            return True
        if actor.wakes_at > self.steps:
            return False
        return actor.condition is None or self.steps >= actor.deadline or actor.condition()

    def _wakes_at(self, actor: Actor) -> int:
        """The step at which it can go on, if nobody else does anything."""
        if actor.condition is None or actor.condition():
            return actor.wakes_at
        return max(actor.wakes_at, actor.deadline)

    def end(self) -> None:
        """Kill everybody, so that no thread is left behind."""
        for actor in self._actors:
            actor.killed = True
        while self._actors:
            self.current = actor = self._actors[-1]
            actor.go.release()
            self._hub.acquire()
            if actor.done:
                self._actors.remove(actor)
        self.current = None

    def _names(self) -> str:
        return ", ".join(f"{actor.name} ({'waits' if actor.condition else 'runs'})" for actor in self._actors)


A_MINUTE = 60
"""Seconds: whoever waits so long in a history waits for ever."""


class SimulatedFuture(Future[_T]):
    """Whoever waits for it gives the baton away. With a time limit, the seed says how much others do meanwhile."""

    def __init__(self, scheduler: Scheduler, patience: Callable[[], int]) -> None:
        super().__init__()
        self._scheduler = scheduler
        self._patience = patience

    def result(self, timeout: float | None = None) -> _T:
        if self._scheduler.current is not None and timeout != 0:
            patience = FOREVER if timeout is None or timeout >= A_MINUTE else self._patience()
            self._scheduler.wait_until(self.done, patience)
        return super().result(0)


class SimulatedBackground:
    """Implements `headwater.runtime.background.Background` with actors."""

    def __init__(self, scheduler: Scheduler, group: str, patience: Callable[[], int]) -> None:
        self._scheduler = scheduler
        self._group = group
        self._patience = patience

    def future(self) -> SimulatedFuture[Any]:
        return SimulatedFuture(self._scheduler, self._patience)

    def start(self, name: str, work: Callable[[], _T]) -> Future[_T]:
        future: SimulatedFuture[_T] = self.future()
        self._scheduler.spawn(name, self._group, lambda: _fulfil(future, work))
        return future

    def queue(self, name: str) -> Executor:
        return _Queue(self, self._scheduler, self._group, name)


class _Queue(Executor):
    def __init__(self, background: SimulatedBackground, scheduler: Scheduler, group: str, name: str) -> None:
        self._background = background
        self._scheduler = scheduler
        self._group = group
        self._name = name
        self._waiting: deque[tuple[SimulatedFuture[Any], Callable[[], Any]]] = deque()
        self._busy = False

    def submit(self, fn: Callable[..., _T], /, *args: Any, **kwargs: Any) -> Future[_T]:
        future = self._background.future()
        self._waiting.append((future, lambda: fn(*args, **kwargs)))
        if not self._busy:
            self._busy = True
            self._scheduler.spawn(self._name, self._group, self._work)
        return future

    def _work(self) -> None:
        while self._waiting:
            _fulfil(*self._waiting.popleft())
        self._busy = False

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        if wait and self._scheduler.current is not None:
            self._scheduler.wait_until(lambda: not self._busy)


def _fulfil(future: SimulatedFuture[_T], work: Callable[[], _T]) -> None:
    try:
        result = work()
    except Killed:
        raise
    except BaseException as error:
        future.set_exception(error)
    else:
        future.set_result(result)
