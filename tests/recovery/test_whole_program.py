"""An unchanged PyFlink program from Kafka to Kafka and PostgreSQL gets `kill -9` at random, and poison pills at every
stage: the whole output is compared, in order, and each pill is a dead letter, once.

In an ordinary run a driver, a slot and a Python worker are killed; with `CHAOS=full` (`make chaos`) thirty of each.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from headwater.common.dead_letter import DeadLetter
from headwater.datastream.dead_letter_files import DeadLetterBox
from headwater.testing.kafka import KafkaBroker
from tests.postgres_server import jdbc_url, postgres_server
from tests.recovery.runs import KILLED, Run
from tests.recovery.size import KILLS
from tests.recovery.test_chaos import kill, python_workers, wait_for_more
from tests.unit.connectors.jdbc import tables
from tests.unit.connectors.kafka import clients
from tests.waiting import wait_until

PROGRAM = Path(__file__).with_name("pyflink_program.py")
PORTION = 120
CUSTOMERS = 8
PILLS = {41: "source", 42: "function", 43: "function", 44: "sink"}
"""{number of the order, modulo 50: the stage that refuses it}"""


def order(number: int) -> bytes:
    stage = PILLS.get(number % 50)
    if stage == "source":
        return b'{"note": "order %d \xff"}' % number  # no UTF-8
    found: dict[str, Any] = {"customer": customer(number), "cents": number, "note": f"order {number}"}
    if number % 50 == 42:
        return json.dumps(found).encode()[:-1]  # no JSON
    if number % 50 == 43:
        found["cents"] = f"{number}"
    if stage == "sink":
        found["note"] += " \0"  # which no text of PostgreSQL has
    return json.dumps(found).encode()


def customer(number: int) -> str:
    return f"c{number % CUSTOMERS}"


def expected(count: int) -> tuple[dict[str, list[str]], list[tuple[Any, ...]]]:
    """What must be in the topic, by customer, in order; and in the table."""
    topic: dict[str, list[str]] = {}
    table = []
    cents: Counter[str] = Counter()
    for number in range(count):
        stage = PILLS.get(number % 50)
        if stage in (None, "sink"):
            name = customer(number)
            cents[name] += number
            lines = topic.setdefault(name, [])
            lines.append(f"{name} {len(lines) + 1} {cents[name]}")
            if stage is None:
                table.append((name, len(lines), cents[name], f"order {number}"))
    return topic, sorted(table)


class ProgramRun(Run):
    """`headwater run` of the program, with the same checkpoint directory each time."""

    arguments: tuple[str, ...] = ()

    @property
    def letters(self) -> Path:
        return self.directory / "letters"

    def command(self) -> list[str]:
        settings = {
            "execution.checkpointing.dir": self.checkpoints,
            "headwater.dead-letters.dir": self.letters,
            "headwater.master": "local[2]",
            "headwater.epoch.max-records": 40,
            "headwater.epoch.min-records": 40,
        }
        given = [word for name, value in settings.items() for word in ("-D", f"{name}={value}")]
        return [sys.executable, "-m", "headwater.cli.main", "run", *given, str(PROGRAM), *self.arguments]


@pytest.mark.slow
@pytest.mark.timeout(7200 if KILLS > 1 else 400)
def test_a_program_that_is_killed_at_random(tmp_path: Path) -> None:
    seed = int(os.environ.get("CHAOS_SEED", random.randrange(1 << 30)))
    print(f"CHAOS_SEED={seed}")
    dice = random.Random(seed)
    run = ProgramRun(tmp_path / "run", 0, 0)
    victims = ["driver", "slot", "worker"] * KILLS
    dice.shuffle(victims)
    killed: Counter[str] = Counter()
    with KafkaBroker({"orders": 2, "totals": 1}) as broker, postgres_server() as postgres:
        servers = broker.bootstrap_servers
        run.arguments = (servers, jdbc_url(postgres.uri))
        tables.run(postgres.uri, "CREATE TABLE totals (customer text, orders bigint, cents bigint, note text)")
        produced = 0
        try:
            driver = run.start()
            for victim in victims:
                clients.produce(servers, "orders", map(order, range(produced, produced + PORTION)))
                produced += PORTION
                assert wait_for_more(run), run.log()
                time.sleep(dice.random() * 0.3)
                if victim == "driver":
                    os.killpg(driver.pid, signal.SIGKILL)
                    assert driver.wait(30) == KILLED
                    driver = run.start()
                else:
                    pids = run.slots if victim == "slot" else lambda: python_workers(run)
                    wait_until(lambda pids=pids: kill(pids(), dice) is not None, victim)  # type: ignore[misc]
                killed[victim] += 1
            topic, table = expected(produced)
            lines = sum(map(len, topic.values()))
            run.wait_until(lambda: len(clients.values(servers, "totals")) >= lines, "the topic")
            query = "SELECT customer, orders, cents, note FROM totals ORDER BY 1, 2"
            run.wait_until(lambda: len(tables.run(postgres.uri, query)) >= len(table), "the table")
            assert driver.poll() is None
        finally:
            run.stop()
        found: dict[str, list[str]] = {}
        for record in clients.read_all(servers, "totals"):
            assert record.value is not None
            found.setdefault(record.value.decode().split()[0], []).append(record.value.decode())
        assert found == topic
        assert tables.run(postgres.uri, query) == table
    letters = Counter((letter.stage, pill(letter)) for letter in DeadLetterBox.read(str(run.letters)).letters)
    assert letters == Counter((PILLS[n % 50], n) for n in range(produced) if n % 50 in PILLS)
    print(f"killed {dict(killed)}: {lines} totals in the topic, {len(table)} rows, {letters.total()} dead letters")


def pill(letter: DeadLetter) -> int:
    """The number of the order that became a letter."""
    found = re.search(rb"order (\d+)", letter.raw or b"")
    assert found is not None, letter
    return int(found[1])
