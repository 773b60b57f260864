"""`kill -9` of the driver at every step of an epoch and of its commit to Redis and NATS: the whole output is compared.

In an ordinary run each step is hit once; `make chaos` hits each of them thirty times.
"""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import nats
import pytest
import redis

from headwater.common import Configuration, SimpleStringSchema
from headwater.datastream import StreamExecutionEnvironment
from headwater.datastream.connectors.nats import NatsSink
from headwater.datastream.connectors.redis import RedisSink
from headwater.testing import STEPS, assert_same_records, in_process
from tests.recovery.broker_driver import IN_COMMIT
from tests.recovery.hitting import ROOT, STOP, outlive_a_zombie
from tests.recovery.size import DOWN_SECONDS, KILLS
from tests.unit.connectors.brokers.servers import free_port, nats_server, redis_server

RECORDS_PER_KILL = 60


def command(which: str, url: str, directory: Path, step: str, times: int) -> list[str]:
    return [sys.executable, "-m", "tests.recovery.broker_driver", which, url, str(directory), step, str(times)]


def killed_at_every_step(which: str, url: str, directory: Path) -> None:
    steps = [step for step in (*STEPS, *IN_COMMIT) for _ in range(KILLS)]
    killed: Counter[str] = Counter()
    for number, step in enumerate([*steps, "none"]):
        run = command(which, url, directory, step, 1 + number % 2)
        done = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, timeout=120)
        assert done.returncode in (0, -signal.SIGKILL), done.stdout + done.stderr
        killed[step] += done.returncode != 0
    assert min(killed[step] for step in steps) >= KILLS, killed
    print(f"{sum(killed.values())} drivers killed at {dict(killed)}", flush=True)


PATIENT = {
    "restart-strategy.type": "exponential-delay",
    "restart-strategy.exponential-delay.initial-backoff": "100 ms",
    "restart-strategy.exponential-delay.max-backoff": "1 s",
}
"""The default strategy gives up after ten seconds."""


class Server:
    """A server that can go down and come back with its data, at the same address."""

    def __init__(self, serve: Callable[..., Any], directory: Path) -> None:
        self._serve = partial(serve, directory, port=free_port())
        self.start()

    def start(self) -> None:
        self._stack = ExitStack()
        self.url: str = self._stack.enter_context(self._serve())

    def go_down(self, _: object) -> None:
        self._stack.close()
        threading.Timer(DOWN_SECONDS, self.start).start()

    def close(self) -> None:
        self._stack.close()


@pytest.mark.recovery
@pytest.mark.timeout(600)
@pytest.mark.parametrize("at", ["begin", "manifest-written"])
@pytest.mark.parametrize("which", ["redis", "nats"])
def test_a_server_that_is_down_for_a_while_costs_only_time(tmp_path: Path, which: str, at: str) -> None:
    """The job waits with its commit, and goes on when the server is back."""
    count = 200
    server = Server(redis_server if which == "redis" else nats_server, tmp_path)
    try:
        sink: Any
        if which == "redis":
            sink = RedisSink.builder().set_url(server.url).set_command(lambda n: ("RPUSH", "out", n)).build()
        else:
            asyncio.run(with_js(server.url, lambda js: js.add_stream(name="OUT", subjects=["out"])))
            builder = NatsSink.builder().set_url(server.url).set_stream("OUT").set_subject("out")
            sink = builder.set_value_serializer(SimpleStringSchema()).build()
        with in_process(epoch_records=20) as here:
            here.call(server.go_down, epoch=3, at=at)
            env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(PATIENT))
            env.from_collection([str(number) for number in range(count)]).sink_to(sink)
            env.execute("outage")
        if which == "redis":
            found = [each.decode() for each in redis.Redis.from_url(server.url).lrange("out", 0, -1)]
        else:
            found = asyncio.run(with_js(server.url, messages))
        assert_same_records(found, [str(number) for number in range(count)])
    finally:
        server.close()


async def with_js(url: str, work: Callable[[Any], Any]) -> Any:
    connection = await nats.connect(url)
    try:
        return await work(connection.jetstream())
    finally:
        await connection.close()


async def messages(js: Any) -> list[str]:
    last = (await js.stream_info("OUT")).state.last_seq
    return [(await js.get_msg("OUT", number)).data.decode() for number in range(1, last + 1)]


def expected(count: int) -> list[str]:
    return [f"k{key} {number}" for key in range(7) for number in range(1, len(range(key, count, 7)) + 1)]


def fill_redis(url: str, count: int) -> redis.Redis:
    client = redis.Redis.from_url(url)
    for number in range(count):
        client.xadd("in", {"value": number})
    return client


async def fill_nats(url: str, count: int, **out: Any) -> None:
    connection = await nats.connect(url)
    js = connection.jetstream()
    await js.add_stream(name="IN", subjects=["in"])
    await js.add_stream(name="OUT", subjects=["out"], **out)
    for number in range(count):
        await js.publish("in", str(number).encode())
    await connection.close()


COUNT = RECORDS_PER_KILL * (KILLS * (len(STEPS) + len(IN_COMMIT)) + 1)


@pytest.mark.recovery
@pytest.mark.slow
@pytest.mark.timeout(7200 if KILLS > 1 else 240)
def test_redis(tmp_path: Path) -> None:
    with redis_server(tmp_path) as url:
        client = fill_redis(url, COUNT)
        killed_at_every_step("redis", url, tmp_path / "checkpoints")
        assert_same_records([each.decode() for each in client.lrange("out", 0, -1)], expected(COUNT))


@pytest.mark.recovery
@pytest.mark.slow
@pytest.mark.timeout(7200 if KILLS > 1 else 240)
def test_nats(tmp_path: Path) -> None:
    with nats_server(tmp_path / "nats") as url:
        # The server forgets ids at once: what is there must be found by looking.
        asyncio.run(fill_nats(url, COUNT, duplicate_window=0.1))
        killed_at_every_step("nats", url, tmp_path / "checkpoints")
        assert_same_records(asyncio.run(with_js(url, messages)), expected(COUNT))


@pytest.mark.recovery
@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.parametrize("which", ["redis", "nats"])
def test_a_stopped_driver_that_goes_on_later_changes_nothing(tmp_path: Path, which: str) -> None:
    count = 200
    with (redis_server if which == "redis" else nats_server)(tmp_path) as url:
        client = fill_redis(url, count) if which == "redis" else asyncio.run(fill_nats(url, count))
        checkpoints = tmp_path / "checkpoints"

        def end() -> None:
            done = subprocess.run(command(which, url, checkpoints, "none", 0), cwd=ROOT, capture_output=True, text=True)
            assert done.returncode == 0, done.stdout + done.stderr

        def check() -> None:
            found = [each.decode() for each in client.lrange("out", 0, -1)] if client else None
            assert_same_records(asyncio.run(with_js(url, messages)) if found is None else found, expected(count))

        outlive_a_zombie(command(which, url, checkpoints, f"{STOP}before-delivery", 2), checkpoints, end, check)
