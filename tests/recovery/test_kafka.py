"""`kill -9` of the driver at every step of an epoch and of its commit to Kafka: the whole output is compared.

In an ordinary run each step is hit once; `make chaos` hits each of them thirty times.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import pytest

from headwater.common import Types, WatermarkStrategy
from headwater.datastream import StreamExecutionEnvironment
from headwater.testing import STEPS, in_process
from headwater.testing.kafka import KafkaBroker
from tests.recovery.hitting import ROOT, STOP, outlive_a_zombie
from tests.recovery.kafka_driver import IN_COMMIT
from tests.recovery.size import DOWN_SECONDS, KILLS
from tests.unit.connectors.kafka import clients

KILLS_PER_JOB = 11
RECORDS_PER_KILL = 60
"""Three epochs: a driver gets that far before the next kill at the latest."""


@pytest.mark.recovery
@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("at", ["begin", "manifest-written"])
def test_a_broker_that_is_down_for_a_while_costs_only_time(at: str) -> None:
    count = 400
    with KafkaBroker({"in": 2, "out": 3}) as broker, in_process(epoch_records=40) as here:
        servers = broker.bootstrap_servers
        clients.produce(servers, "in", range(count))

        def go_down(_: object) -> None:
            broker.stop()
            threading.Timer(DOWN_SECONDS, broker.start).start()

        here.call(go_down, epoch=3, at=at)
        env = StreamExecutionEnvironment.get_execution_environment()
        stream = env.from_source(clients.source(servers).build(), WatermarkStrategy.no_watermarks(), "kafka")
        stream.map(lambda text: f"k {text}", Types.STRING()).sink_to(clients.sink(servers))
        env.execute("outage")
        assert clients.values(servers, "out") == sorted(f"k {number}" for number in range(count))


def command(servers: str, directory: Path, step: str, times: int) -> list[str]:
    return [sys.executable, "-m", "tests.recovery.kafka_driver", servers, str(directory), step, str(times)]


def driver(servers: str, directory: Path, step: str, times: int) -> int:
    done = subprocess.run(
        command(servers, directory, step, times), cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert done.returncode in (0, -signal.SIGKILL), done.stdout + done.stderr
    return done.returncode


@pytest.mark.recovery
@pytest.mark.slow
@pytest.mark.timeout(7200 if KILLS > 1 else 240)
def test_drivers_killed_at_every_step(tmp_path: Path) -> None:
    seed = int(os.environ.get("CHAOS_SEED", random.randrange(1 << 30)))
    print(f"CHAOS_SEED={seed}")
    dice = random.Random(seed)
    steps = [step for step in (*STEPS, *IN_COMMIT) for _ in range(KILLS)]
    dice.shuffle(steps)
    killed: Counter[str] = Counter()
    for number, first in enumerate(range(0, len(steps), KILLS_PER_JOB)):
        killed += one_job(tmp_path / str(number), steps[first : first + KILLS_PER_JOB], dice)
    assert set(killed) == {*STEPS, *IN_COMMIT} and min(killed.values()) >= KILLS, killed


def one_job(directory: Path, steps: list[str], dice: random.Random) -> Counter[str]:
    """Run one job whose drivers are killed at these steps, and compare its output."""
    count = RECORDS_PER_KILL * (len(steps) + 1)
    killed: Counter[str] = Counter()
    with KafkaBroker({"in": 2, "out": 3}) as broker:
        servers = broker.bootstrap_servers
        clients.produce(servers, "in", range(count))
        for step in steps:
            if driver(servers, directory, step, dice.randint(1, 2)) != 0:
                killed[step] += 1
        assert driver(servers, directory, "none", 0) == 0
        assert_counted(servers, count, f"kills at {steps}")
        assert broker.committed("group") == {("in", 0): count // 2, ("in", 1): count // 2}
        assert broker.open_transactions() == []
    print(f"{sum(killed.values())} drivers killed at {dict(killed)}; {count} records counted once", flush=True)
    return killed


def assert_counted(servers: str, count: int, what: str = "") -> None:
    """Each key's numbers are there, once and in order."""
    last: dict[str, int] = {}
    for record in clients.read_all(servers, "out"):
        assert record.value is not None
        key, number = record.value.decode().split()
        assert int(number) == last.get(key, 0) + 1, f"{record} follows {last.get(key, 0)}; {what}"
        last[key] = int(number)
    assert last == {f"k{key}": len(range(key, count, 7)) for key in range(7)}


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.parametrize("step", IN_COMMIT)
def test_a_stopped_driver_that_goes_on_later_changes_nothing(tmp_path: Path, step: str) -> None:
    count = 200
    with KafkaBroker({"in": 2, "out": 3}) as broker:
        servers = broker.bootstrap_servers
        clients.produce(servers, "in", range(count))

        def end() -> None:
            assert driver(servers, tmp_path, "none", 0) == 0

        outlive_a_zombie(
            command(servers, tmp_path, STOP + step, 2), tmp_path, end, lambda: assert_counted(servers, count)
        )
        assert broker.open_transactions() == []
