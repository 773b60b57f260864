"""Slots and Python workers of a job on Spark get `kill -9` while it writes to files, Delta, Iceberg, Redis and NATS at
once: all five have each record once.

In an ordinary run a few are killed; `make chaos` kills thirty slots and thirty workers at each step.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import nats
import pytest
import redis

from headwater.runtime.epoch import fault
from tests.recovery import jdbc_job, sinks_job
from tests.recovery.conftest import MakeRun
from tests.recovery.runs import Fault
from tests.recovery.test_lakes import output
from tests.unit.connectors.brokers.servers import nats_server, redis_server

KILLS = 30 if os.environ.get("CHAOS") == "full" else 1
STEPS = fault.STEPS if KILLS > 1 else ("processed", "manifest-written")
EPOCH_RECORDS = 100


@pytest.mark.slow
@pytest.mark.timeout(7200 if KILLS > 1 else 240)
def test_slots_and_workers_killed(tmp_path: Path, make_run: MakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    faults = [
        Fault(step, epoch, victim)
        for epoch, (step, victim) in enumerate(list(product(STEPS, ("slot", "worker"))) * KILLS, start=1)
    ]
    records = EPOCH_RECORDS * (len(faults) + 3)
    with redis_server(tmp_path) as redis_url, nats_server(tmp_path / "nats") as nats_url:
        places = {"redis": redis_url, "nats": nats_url, "lakes": str(tmp_path / "lakes")}
        monkeypatch.setenv(sinks_job.PLACES, json.dumps(places))
        asyncio.run(with_js(nats_url, lambda js: js.add_stream(name="OUT", subjects=["out"])))
        run = make_run(records, EPOCH_RECORDS, module="tests.recovery.sinks_job")
        run.plan(faults)
        run.finish(7000)
        run.assert_all_fired_in_mid_run()
        found = {
            "redis": [each.decode() for each in redis.Redis.from_url(redis_url).lrange("out", 0, -1)],
            "nats": asyncio.run(with_js(nats_url, messages)),
            "files": list(run.lines().elements()),
        }
    expected = Counter({(key, n): count for (n, key), count in jdbc_job.expected(records).items()})
    for kind, texts in found.items():
        assert Counter((key, int(n)) for key, n in map(str.split, texts)) == expected, kind
    for kind in ("delta", "iceberg"):
        assert output(kind, tmp_path / "lakes" / kind) == expected, kind
    print(f"{len(faults)} slots and workers killed; {records} records in each of five sinks, once")


async def with_js(url: str, work: Any) -> Any:
    connection = await nats.connect(url)
    try:
        return await work(connection.jetstream())
    finally:
        await connection.close()


async def messages(js: Any) -> list[str]:
    last = (await js.stream_info("OUT")).state.last_seq
    return [(await js.get_msg("OUT", number)).data.decode() for number in range(1, last + 1)]
