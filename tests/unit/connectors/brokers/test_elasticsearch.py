"""Elasticsearch, as a small server of the test's own understands it: no real one can be had here."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from headwater.common import Row
from headwater.common.errors import ConfigurationError, HeadwaterError
from headwater.datastream import StreamExecutionEnvironment
from headwater.datastream.connectors.base import DeliveryGuarantee
from headwater.datastream.connectors.elasticsearch import (
    Elasticsearch6SinkBuilder,
    Elasticsearch7SinkBuilder,
    ElasticsearchEmitter,
    ElasticsearchSink,
    FlushBackoffType,
)
from headwater.testing import STEPS, CollectingSink, JobCrashed, in_process
from tests.unit.connectors.brokers.programs import run_once
from tests.unit.connectors.brokers.test_http import QuietServer

Answer = Callable[[dict[str, Any]], int]


class Cluster:
    """Documents by index and id. `answers` are for the next requests: a status, "lost", or a status for each action."""

    def __init__(self) -> None:
        self.indexes: dict[str, dict[str, Any]] = {}
        self.answers: list[int | str | Answer] = []
        self.requests: list[tuple[str, int, str | None]] = []
        self.types: set[str | None] = set()
        self.password = ""
        cluster = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                lines = self.rfile.read(int(self.headers["Content-Length"])).splitlines()
                answer: Any = cluster.answers.pop(0) if cluster.answers else 200
                cluster.requests.append((self.path, len(lines) // 2, self.headers["Authorization"]))
                if isinstance(answer, int) and answer != 200:
                    return self.reply(answer, b"{}")
                items = [
                    cluster.apply(json.loads(head), json.loads(body), answer if callable(answer) else None)
                    for head, body in zip(lines[::2], lines[1::2], strict=True)
                ]
                if answer == "lost":
                    self.close_connection = True
                    return None
                items = items[1:] if answer == "one missing" else items
                return self.reply(200, json.dumps({"errors": answer != 200, "items": items}).encode())

            def do_GET(self) -> None:
                allowed = not cluster.password or cluster.password in (self.headers["Authorization"] or "")
                self.reply(200 if allowed else 401, b"{}")

            def reply(self, status: int, content: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *arguments: Any) -> None: ...

        self.server = QuietServer(("127.0.0.1", 0), Handler)
        self.host = f"127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def apply(self, head: dict[str, Any], body: dict[str, Any], refuse: Answer | None) -> dict[str, Any]:
        ((kind, target),) = head.items()
        document = body["doc"] if kind == "update" else body
        status = refuse(document) if refuse is not None else 200
        if status == 200:
            self.types.add(target.get("_type"))
            index = self.indexes.setdefault(target["_index"], {})
            index[target["_id"]] = (index.get(target["_id"], {}) if kind == "update" else {}) | document
            return {kind: {"status": 200}}
        return {kind: {"status": status, "error": {"type": "some_exception", "reason": "no"}}}

    def documents(self, index: str = "numbers") -> list[Any]:
        return list(self.indexes.get(index, {}).values())


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    cluster = Cluster()
    yield cluster
    cluster.server.shutdown()
    cluster.server.server_close()


def builder(cluster: Cluster, **settings: Any) -> Any:
    made = Elasticsearch7SinkBuilder().set_hosts(cluster.host)
    made.set_emitter(settings.pop("emitter", ElasticsearchEmitter.static_index("numbers", "n")))
    made.set_bulk_flush_backoff_strategy(FlushBackoffType.CONSTANT, 3, 1)
    for name, value in settings.items():
        getattr(made, f"set_{name}")(value)
    return made


def run(sink: ElasticsearchSink, records: list[Any]) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    # Through state: so that every step of an epoch is there.
    env.from_collection(records).key_by(lambda record: 0).reduce(lambda _, record: record).sink_to(sink)
    env.execute("documents")


def numbers(start: int, stop: int) -> list[dict[str, int]]:
    return [{"n": number} for number in range(start, stop)]


@pytest.mark.parametrize("key_field", ["n", None])
@pytest.mark.parametrize("step", STEPS)
def test_a_crash_at_each_step_writes_each_document_once(cluster: Cluster, step: str, key_field: str | None) -> None:
    sink = builder(cluster, emitter=ElasticsearchEmitter.static_index("numbers", key_field)).build()
    with in_process(epoch_records=5) as here:
        here.crash_job(epoch=3, at=step)
        with pytest.raises(JobCrashed):
            run(sink, numbers(0, 30))
        run(sink, numbers(0, 30))
    assert sorted(each["n"] for each in cluster.documents()) == list(range(30))


@pytest.mark.parametrize("key_field", ["n", None])
def test_trouble_that_passes(cluster: Cluster, key_field: str | None) -> None:
    cluster.answers = [429, 503, "lost", lambda each: 429 if each["n"] % 3 else 200, lambda each: 503 - each["n"] % 2]
    sink = builder(cluster, emitter=ElasticsearchEmitter.static_index("numbers", key_field))
    sink.set_bulk_flush_backoff_strategy(FlushBackoffType.EXPONENTIAL, 3, 1)
    with in_process(epoch_records=10):
        run(sink.build(), numbers(0, 20))
    assert sorted(each["n"] for each in cluster.documents()) == list(range(20))


def test_the_last_value_of_a_document_wins_after_a_partial_failure(cluster: Cluster) -> None:
    records = [{"id": id, "v": v, f"f{v}": v} for v in range(3) for id in "ab"]
    cluster.answers = [lambda each: 429 if (each["id"], each["v"]) == ("a", 1) else 200]
    with in_process(epoch_records=6):
        run(builder(cluster, emitter=ElasticsearchEmitter.static_index("numbers", "id")).build(), records)
    assert cluster.documents() == [{"id": id, "v": 2, "f0": 0, "f1": 1, "f2": 2} for id in "ab"]
    assert [count for _, count, _ in cluster.requests] == [6, 2]


def test_what_is_refused_for_good_is_told(cluster: Cluster) -> None:
    cluster.answers = [lambda each: 400 if each["n"] == 3 else 200] * 100
    with in_process(), pytest.raises(HeadwaterError, match=r"refuses document '3' of index 'numbers': 400 .*some_exc"):
        run(builder(cluster).build(), numbers(0, 5))
    cluster.answers = [404] * 100
    with in_process(), pytest.raises(HeadwaterError, match=r"POST .*_bulk: 404"):
        run(builder(cluster).build(), numbers(0, 5))
    cluster.answers = ["one missing"] * 100
    with in_process(), pytest.raises(HeadwaterError, match="expected an answer for each of 5 actions"):
        run(builder(cluster).build(), numbers(0, 5))


def test_without_retries_the_restart_strategy_decides(cluster: Cluster) -> None:
    cluster.answers = [503]
    sink = builder(cluster).set_bulk_flush_backoff_strategy(FlushBackoffType.NONE, 0, 0).build()
    with in_process():
        run(sink, numbers(0, 5))
    assert len(cluster.documents()) == 5 and len(cluster.requests) == 2


def test_indexes_types_rows_and_limits(cluster: Cluster) -> None:
    emitter = ElasticsearchEmitter.dynamic_index("kind", "n", "number")
    sink = builder(cluster, emitter=emitter, bulk_flush_max_actions=2, connection_path_prefix="/es/").build()
    with in_process(epoch_records=5):
        run(sink, [Row(kind="odd" if n % 2 else "even", n=n) for n in range(5)])
    assert [each["n"] for each in cluster.documents("even")] == [0, 2, 4]
    assert [(path, count) for path, count, _ in cluster.requests] == [("/es/_bulk", n) for n in (2, 2, 1)]
    assert cluster.types == {None}
    with in_process():
        run(Elasticsearch6SinkBuilder().set_hosts([cluster.host]).set_emitter(emitter).build(), [{"kind": "x", "n": 1}])
    assert cluster.types == {None, "number"}


def test_records_that_are_no_documents_are_refused(cluster: Cluster) -> None:
    letters = CollectingSink()
    with in_process():
        env = StreamExecutionEnvironment.get_execution_environment()
        records = [{"n": 1}, {"m": 1}, "text", {"n": 2, "x": object}, {"n": 3}]
        env.from_collection(records).sink_to(builder(cluster).build()).with_dead_letters(letters)
        env.execute()
    assert [each["n"] for each in cluster.documents()] == [1, 3]
    assert len(letters.results()) == 3


def test_another_host_is_asked_if_one_is_away(cluster: Cluster) -> None:
    with in_process(epoch_records=5):
        run(builder(cluster, hosts=["127.0.0.1:1", cluster.host]).build(), numbers(0, 10))
    assert len(cluster.documents()) == 10


def test_passwords(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster.password = "dXNlcjpzZWNyZXQ="  # user:secret
    monkeypatch.setenv("ELASTIC_PASSWORD", "secret")
    sink = builder(cluster, connection_username="user", connection_password="${env:ELASTIC_PASSWORD}").build()
    with in_process():
        run(sink, numbers(0, 1))
    assert cluster.requests[0][2] == f"Basic {cluster.password}" and "secret" not in repr(sink)
    with pytest.raises(HeadwaterError, match="401"):
        run_once(builder(cluster, connection_username="user", connection_password="wrong").build())


def test_settings(cluster: Cluster) -> None:
    for bad in (
        lambda: Elasticsearch7SinkBuilder().build(),
        lambda: Elasticsearch7SinkBuilder().set_hosts("ftp://x"),
        lambda: Elasticsearch7SinkBuilder().set_emitter(str),  # type: ignore[arg-type]
        lambda: Elasticsearch7SinkBuilder().set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE),
        lambda: Elasticsearch7SinkBuilder().set_bulk_flush_max_actions(0),
        lambda: Elasticsearch7SinkBuilder().set_bulk_flush_backoff_strategy("fast", 1, 1),  # type: ignore[arg-type]
        lambda: ElasticsearchEmitter.static_index(""),
    ):
        with pytest.raises(ConfigurationError):
            bad()
