"""`auto` under load: the engines change both ways while slots, workers and the resident task are killed."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import pairwise

from tests.recovery.bursts import Feeder, expected, input_file
from tests.recovery.conftest import MakeRun
from tests.recovery.engines_used import engines_of
from tests.recovery.runs import START_SECONDS, Fault, Run, assert_same

EPOCH_RECORDS = 250
BURST = 60 * EPOCH_RECORDS
CONF = {"headwater.epoch.engine": "auto", "headwater.slot.health-check": "1 s"}


class Bursts:
    """A run, and what it gets to read."""

    def __init__(self, make_run: MakeRun, **conf: object) -> None:
        self.run: Run = make_run(0, EPOCH_RECORDS, module="tests.recovery.bursts", conf=CONF | conf)
        self.feeder = Feeder(input_file(self.run.output))

    def engines(self) -> list[str]:
        return engines_of(self.run.directory)

    def slowly_until(
        self, condition: Callable[[], bool], what: str, *, records: int = 3, seconds: float = START_SECONDS
    ) -> None:
        """Feed a few records now and then."""

        def fed() -> bool:
            self.feeder.feed(records)
            time.sleep(0.02)
            return condition()

        self.run.wait_until(fed, what, seconds)

    def slowly_until_resident(self) -> None:
        seen = len(self.engines())
        self.slowly_until(lambda: self.engines()[seen:][-5:] == ["resident"] * 5, "five resident epochs in a row")

    def kill(self, victim: str, until_fired: Callable[[Callable[[], bool], str], None]) -> None:
        """Kill it in the middle of an epoch that begins soon."""
        fault = Fault("processed", self.run.epoch() + 3, victim)
        self.run.plan([fault])
        until_fired(lambda: fault in self.run.fired() or self.run.epoch() > fault.epoch, f"{fault} to fire")
        assert fault in self.run.fired()

    def kill_resident(self) -> None:
        """Slots and the resident task, each while epochs run resident."""
        for victim in ("slot", "worker"):
            self.slowly_until_resident()
            self.kill(victim, self.slowly_until)
        self.slowly_until_resident()

    def end(self) -> None:
        self.feeder.end()
        self.run.wait_for_end()


def test_engines_change_under_load_and_lose_nothing_to_kills(make_run: MakeRun) -> None:
    bursts = Bursts(make_run)
    run = bursts.run
    run.start()
    bursts.kill_resident()

    before = len(bursts.engines())
    bursts.feeder.feed(BURST)
    for victim in ("slot", "worker"):
        seen = len(bursts.engines())
        run.wait_until(lambda seen=seen: bursts.engines()[seen:].count("shuffle") >= 3, "epochs with shuffles")  # type: ignore[misc]
        bursts.kill(victim, run.wait_until)
    run.wait_until(lambda: bursts.engines()[-3:] == ["shuffle"] * 3, "the load to go on")
    assert len(bursts.engines()) - before < BURST // EPOCH_RECORDS - 5, "the kills came when the burst was over"

    bursts.kill_resident()
    bursts.end()

    run.assert_all_fired_in_mid_run()
    progress = run.progress()
    assert progress["restarts"] >= 6, "a kill inside an epoch did not fail the attempt"
    assert progress["restored_slots"] >= 3, "a killed slot was not missed"
    engines = bursts.engines()
    changes = sum(a != b for a, b in pairwise(engines))
    assert changes >= 7, "to resident and back at each of four kills, and for the burst"
    assert min(engines.count("resident"), engines.count("shuffle")) >= 20
    assert_same(run.lines(), expected(bursts.feeder.fed))
    assert not run.pending_files()
