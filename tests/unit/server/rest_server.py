"""A real server on a real port, with real jobs behind it: they run in this process, without Spark."""

from __future__ import annotations

import contextlib
import http.client
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headwater.common import Configuration
from headwater.common.job_status import JobStatus
from headwater.common.typeinfo import Types
from headwater.common.watermark_strategy import WatermarkStrategy
from headwater.datastream import StreamExecutionEnvironment
from headwater.datastream.connectors.data_generator import DataGeneratorSource
from headwater.datastream.functions import KeyedProcessFunction
from headwater.datastream.state import ValueStateDescriptor
from headwater.runtime.job.handle import LocalJobClient
from headwater.runtime.job.run_directory import RunDirectory
from headwater.server.cluster import Cluster, History, Submissions
from headwater.server.create_app import create_app
from headwater.server.embedded import EmbeddedServer
from headwater.server.rest_settings import RestSettings
from headwater.testing import CollectingSink
from tests.waiting import wait_until


class Count(KeyedProcessFunction):
    def __init__(self, fails_at: int) -> None:
        self._fails_at = fails_at

    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        if value == self._fails_at:
            raise ValueError(f"number {value} is not welcome")
        self.count.update((self.count.value() or 0) + 1)
        yield self.count.value()


def start_job(
    folder: Path,
    name: str = "numbers",
    count: int | None = None,
    fails_at: int = -1,
    fixed_parallelism: int | None = None,
    **settings: str,
) -> LocalJobClient:
    """Start the job that Flink's answers were recorded with: numbers, plus one, counted by key. No `count`: no end.

    `fixed_parallelism`: each operator sets its own.
    """
    configuration = Configuration.from_dict(
        {
            "headwater.master": "in-process",
            "headwater.state.dir": str(folder / "state"),
            "execution.checkpointing.dir": str(folder / name),
            "execution.checkpointing.savepoint-dir": str(folder / "savepoints"),
            "headwater.epoch.duration": "100 ms",
            "headwater.epoch.min-records": "10",
            "restart-strategy.type": "none",
            **settings,
        }
    )
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(2)
    watermarks = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda number, _: number)
    numbers = DataGeneratorSource(int, count, rate_per_second=200 if count is None else None)
    stream = env.from_source(numbers, watermarks, "numbers").uid("numbers")
    more = stream.map(lambda n: n + 1).name("plus one").uid("plus-one")
    counted = more.key_by(lambda n: n % 10).process(Count(fails_at))
    counted.name("count").uid("count")
    sink = counted.sink_to(CollectingSink(str(folder / f"{name}-out"))).name("collect").uid("sink")
    if fixed_parallelism is not None:
        for each in (stream, more, counted, sink):
            each.set_parallelism(fixed_parallelism)
    client = env.execute_async(name)
    assert isinstance(client, LocalJobClient)
    return client


@dataclass
class Answer:
    status: int
    headers: Mapping[str, str]
    raw: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.raw)

    @property
    def errors(self) -> list[str]:
        """The texts of an error; fails if it does not have Flink's shape. Queries of state add a code."""
        found = self.json
        value = found["errors"]
        assert set(found) <= {"errors", "code"} and all(isinstance(text, str) and text for text in value), found
        return list(value)


@dataclass
class Rest:
    """A client of the server."""

    port: int
    token: str | None = None
    tls: Any = None
    headers: dict[str, str] = field(default_factory=dict)

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        sent = {**self.headers, **(headers or {})}
        if token or self.token:
            sent["Authorization"] = f"Bearer {token or self.token}"
        raw = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        connection = (
            http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
            if self.tls is None
            else http.client.HTTPSConnection("localhost", self.port, timeout=30, context=self.tls)
        )
        with contextlib.closing(connection):
            connection.request(method, path, raw, sent)
            answer = connection.getresponse()
            return Answer(answer.status, {key.lower(): value for key, value in answer.getheaders()}, answer.read())

    def get(self, path: str, **more: Any) -> Any:
        """The JSON of an answer that must be 200."""
        answer = self.ask("GET", path, **more)
        assert answer.status == 200, (path, answer.status, answer.raw[:500])
        return answer.json


@contextlib.contextmanager
def serving(
    folder: Path,
    *,
    history: History | None = None,
    submissions: Submissions | None = None,
    only: str | None = None,
    log_file: str | None = None,
    **settings: str,
) -> Iterator[Rest]:
    """Serve the jobs of `start_job` in the same folder, on a free port."""
    configuration = Configuration.from_dict(
        {"headwater.state.dir": str(folder / "state"), "rest.port": "0", **settings}
    )
    rest = RestSettings.of(configuration)
    cluster = Cluster(RunDirectory(str(folder / "state")), only=only, history=history)
    app = create_app(rest, cluster, configuration=configuration, submissions=submissions, log_file=log_file)
    server = EmbeddedServer(rest, app)
    server.start()
    try:
        yield Rest(server.port, rest.gate.token or None)
    finally:
        server.stop()


def eventually(what: str, holds: Callable[[], Any], seconds: float = 30) -> Any:
    """Return the first true result of `holds`."""
    return wait_until(holds, what, seconds)


def running(client: LocalJobClient) -> str:
    """Wait until the job has made checkpoints. Returns its id."""
    eventually("checkpoints", lambda: len([c for c in client.checkpoints() if c["status"] == "completed"]) >= 2)
    return str(client.get_job_id())


def end(client: LocalJobClient) -> JobStatus:
    client.cancel().result(30)
    return client.get_job_status().result()
