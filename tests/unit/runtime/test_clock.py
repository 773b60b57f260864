"""The wall clock is set back, or ahead, while a job runs or stands: processing time never goes back, and goes on."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headwater.common import WatermarkStrategy
from headwater.datastream import DataStream, KeyedProcessFunction, StreamExecutionEnvironment
from headwater.datastream.connectors.data_generator import DataGeneratorSource
from headwater.runtime.epoch.decisions import Pace
from headwater.runtime.epoch.messages import EpochHeader
from headwater.runtime.epoch.restart_policy import NoRestart
from headwater.runtime.epoch.sizing import EpochSizer
from headwater.runtime.epoch.wakeup import Wakeup
from headwater.runtime.job.coordinator import Coordinator
from headwater.runtime.job.loop import run_epochs
from headwater.runtime.job.processing_clock import ProcessingClock
from tests.unit.runtime.in_process_engine import InProcessEngine, plan_of
from tests.unit.runtime.test_coordinator import Job

DAY_MS = 86_400_000


class Clocks:
    """A wall clock that people set, and a monotonic one that they cannot."""

    def __init__(self) -> None:
        self.wall = 1_700_000_000_000.0
        self.monotonic = 5_000.0

    def pass_(self, by_ms: float) -> None:
        self.wall += by_ms
        self.monotonic += by_ms

    def set_by(self, by_ms: float) -> None:
        self.wall += by_ms

    def new(self) -> ProcessingClock:
        return ProcessingClock(lambda: self.wall, lambda: self.monotonic)


def test_it_shows_the_wall_clock() -> None:
    clocks = Clocks()
    clock = clocks.new()
    for by_ms in (0, 1, 250, 60_000):
        clocks.pass_(by_ms)
        assert clock.now_ms() == clocks.wall
    assert abs(time.time() * 1000 - ProcessingClock().now_ms()) < 60_000


def test_when_the_clock_goes_back_time_goes_on_from_where_it_was(caplog: pytest.LogCaptureFixture) -> None:
    clocks = Clocks()
    clock = clocks.new()
    before = clock.now_ms()
    clocks.wall -= DAY_MS
    for passed in (10, 20, 30):
        clocks.pass_(10)
        assert clock.now_ms() == before + passed
    (message,) = caplog.messages
    assert "went back" in message and "86,400.0 s" in message
    clocks.wall -= DAY_MS
    clocks.pass_(10)
    assert clock.now_ms() == before + 40
    assert len(caplog.messages) == 2, "once per jump"
    clocks.wall += 2 * DAY_MS
    clocks.pass_(10)
    assert clock.now_ms() == before + 50 == clocks.wall
    assert len(caplog.messages) == 2, "it is where it was expected"


def test_when_the_clock_goes_ahead_so_does_time(caplog: pytest.LogCaptureFixture) -> None:
    clocks = Clocks()
    clock = clocks.new()
    clocks.pass_(5)
    clock.now_ms()
    clocks.wall += DAY_MS
    assert clock.now_ms() == clocks.wall
    clocks.pass_(5)
    assert clock.now_ms() == clocks.wall
    (message,) = caplog.messages
    assert "went ahead" in message and "86,400.0 s" in message


def test_what_was_stamped_elsewhere_is_in_the_past(caplog: pytest.LogCaptureFixture) -> None:
    clocks = Clocks()
    clock = clocks.new()
    clock.not_before(int(clocks.wall) - DAY_MS)
    assert clock.now_ms() == clocks.wall
    clock.not_before(int(clocks.wall) + DAY_MS)
    clocks.pass_(10)
    assert clock.now_ms() == clocks.wall + DAY_MS
    assert len(caplog.messages) == 1


def test_a_pause_between_its_two_looks_does_not_add_up(caplog: pytest.LogCaptureFixture) -> None:
    """On a busy machine the process may sleep at any point: also after it looked at one clock, before the other."""
    clocks = Clocks()

    def wall() -> float:
        clocks.pass_(300)
        return clocks.wall

    def monotonic() -> float:
        seen = clocks.monotonic
        clocks.pass_(300)
        return seen

    clock = ProcessingClock(wall, monotonic)
    for _ in range(100):
        clock.now_ms()
    shown = clock.now_ms()
    assert 0 <= clocks.wall - shown <= 300
    assert caplog.messages == []


# --- jobs


class Timers(KeyedProcessFunction):
    """Each record comes again 20 ms later, if the job lasts so long."""

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Any:
        timers = ctx.timer_service()
        timers.register_processing_time_timer(timers.current_processing_time() + 20)
        yield value

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Any:
        yield ctx.get_current_key() + 1_000


def rated(env: StreamExecutionEnvironment) -> DataStream:
    """40 records at 200 a second: a fifth of a second, if time passes."""
    source = DataGeneratorSource(lambda index: index, 40, rate_per_second=200)
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "rated").uid("rated")
    return stream.key_by(lambda n: n).process(Timers()).uid("timers")


class RatedJob(Job):
    """Its time is that of `Clocks`: 5 ms pass with each attempt, and all that it sleeps."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.clocks = Clocks()
        self.happens_at: dict[int, Callable[[], None]] = {}
        """{epoch: what happens when its first attempt begins}"""

    def begin(self) -> None:
        plan = plan_of(rated, 1, self.sink)
        self.engine = InProcessEngine(plan, self.layout)
        self.engine.before = self._before
        coordinator = self.coordinator = Coordinator(
            plan, "job", self.engine, self.store, NoRestart(), EpochSizer(10, 100, 100), retained=2
        )
        coordinator.clock = self.clocks.new()
        sleeps = iter(range(1_000))

        def wait(seconds: float, wakeup: Wakeup) -> bool:
            self.clocks.pass_(seconds * 1000)
            assert next(sleeps, None) is not None, "the job stands still"
            return False

        self.engine.wait = wait  # type: ignore[method-assign]
        latest = self.store.latest()
        if latest is not None:
            coordinator.resume(latest, latest.incarnation + 1)

    def _before(self, header: EpochHeader) -> None:
        self.clocks.pass_(5)
        self.happens_at.pop(header.attempt.epoch, lambda: None)()

    def run(self) -> None:
        run_epochs(self.coordinator, Pace(10, 10, tick_ms=10))

    def check_results(self, again: int = 20) -> None:
        found = sorted(self.sink.results())
        assert found[:40] == list(range(40)), "each record once"
        assert found[40:][:again] == list(range(1_000, 1_000 + again)), "and again, when its timer is due"

    def stamps(self) -> list[int]:
        return [header.now_ms for header in self.engine.headers]


class Killed(BaseException):
    pass


@pytest.mark.parametrize("by_days", [-1, 1])
def test_a_job_goes_on_when_the_clock_is_set(tmp_path: Path, caplog: pytest.LogCaptureFixture, by_days: int) -> None:
    job = RatedJob(tmp_path)
    job.begin()
    job.happens_at[3] = lambda: job.clocks.set_by(by_days * DAY_MS)
    job.run()
    job.check_results(20 if by_days < 0 else 1)  # if it goes ahead the rate allows a burst, and the end is near
    assert job.stamps() == sorted(set(job.stamps()))
    assert job.stamps()[-1] - job.stamps()[0] >= (150 if by_days < 0 else DAY_MS)
    assert [message for message in caplog.messages if "the clock went" in message]


def test_a_job_goes_on_where_the_clock_is_behind_that_of_its_last_run(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    job = RatedJob(tmp_path)
    job.begin()

    def kill() -> None:
        raise Killed

    job.happens_at[3] = kill
    with pytest.raises(Killed):
        job.run()
    job.coordinator.checkpoints.close()
    manifest = job.store.latest()
    assert manifest is not None
    job.clocks.set_by(-DAY_MS)
    job.begin()
    job.run()
    job.check_results()
    assert manifest.now_ms < job.stamps()[0] < manifest.now_ms + 1_000
    assert len([message for message in caplog.messages if "went back" in message]) == 1
