"""Slots and Python workers of a job on Spark get `kill -9` while it writes to Kafka, PostgreSQL, files, Delta,
Iceberg, Redis and NATS at once: all seven have each record once.

In an ordinary run a few are killed; `make chaos` kills thirty slots and thirty workers at each step.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import nats
import pytest
import redis

from headwater.runtime.epoch import fault
from headwater.testing.kafka import KafkaBroker
from tests.postgres_server import postgres_server
from tests.recovery import sinks_job
from tests.recovery.conftest import MakeRun
from tests.recovery.runs import Fault
from tests.recovery.size import KILLS
from tests.recovery.test_lakes import output
from tests.unit.connectors.brokers.servers import nats_server, redis_server
from tests.unit.connectors.jdbc import tables
from tests.unit.connectors.kafka import clients

STEPS = fault.STEPS if KILLS > 1 else ("processed", "manifest-written")
EPOCH_RECORDS = 100


@pytest.mark.slow
@pytest.mark.timeout(14_400 if KILLS > 1 else 240)
def test_slots_and_workers_killed(tmp_path: Path, make_run: MakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    faults = [
        Fault(step, epoch, victim)
        for epoch, (step, victim) in enumerate(list(product(STEPS, ("slot", "worker"))) * KILLS, start=1)
    ]
    records = EPOCH_RECORDS * (len(faults) + 3)
    with (
        redis_server(tmp_path) as redis_url,
        nats_server(tmp_path / "nats") as nats_url,
        KafkaBroker({"out": 3}) as broker,
        postgres_server() as postgres,
    ):
        places = {
            "kafka": broker.bootstrap_servers,
            "postgres": postgres.uri,
            "redis": redis_url,
            "nats": nats_url,
            "lakes": str(tmp_path / "lakes"),
        }
        monkeypatch.setenv(sinks_job.PLACES, json.dumps(places))
        asyncio.run(with_js(nats_url, lambda js: js.add_stream(name="OUT", subjects=["out"])))
        tables.run(postgres.uri, "CREATE TABLE numbers (i bigint, text text)")
        run = make_run(records, EPOCH_RECORDS, module="tests.recovery.sinks_job")
        run.plan(faults)
        run.finish(7000)
        run.assert_all_fired_in_mid_run()
        found = {
            "kafka": clients.values(broker.bootstrap_servers, "out"),
            "postgres": [f"{key} {n}" for n, key in tables.run(postgres.uri, "SELECT i, text FROM numbers")],
            "redis": [each.decode() for each in redis.Redis.from_url(redis_url).lrange("out", 0, -1)],
            "nats": asyncio.run(with_js(nats_url, messages)),
            "files": list(run.lines().elements()),
        }
    expected = sinks_job.expected(records)
    for kind, texts in found.items():
        assert Counter((key, int(n)) for key, n in map(str.split, texts)) == expected, kind
    for kind in ("delta", "iceberg"):
        assert output(kind, tmp_path / "lakes" / kind) == expected, kind
    print(f"{len(faults)} slots and workers killed; {records} records in each of seven sinks, once")


async def with_js(url: str, work: Any) -> Any:
    connection = await nats.connect(url)
    try:
        return await work(connection.jetstream())
    finally:
        await connection.close()


async def messages(js: Any) -> list[str]:
    last = (await js.stream_info("OUT")).state.last_seq
    return [(await js.get_msg("OUT", number)).data.decode() for number in range(1, last + 1)]
