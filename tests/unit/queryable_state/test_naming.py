"""Giving state a queryable name, and finding operators and slots."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, ClassVar

import pytest

from headwater.common.errors import StateError, TypeMismatchError
from headwater.common.query_error import QueryError, QueryProblem
from headwater.datastream import StreamExecutionEnvironment
from headwater.datastream.state import ListStateDescriptor, ReducingStateDescriptor, ValueStateDescriptor
from headwater.queryable_state.http_locator import HttpLocator
from headwater.queryable_state.locations import Locations
from headwater.state.keys.key_groups import key_group, partition_of_key_group
from headwater.testing import in_process


def test_a_queryable_name_is_set_once() -> None:
    descriptor = ValueStateDescriptor("total")
    assert not descriptor.is_queryable() and descriptor.get_queryable_state_name() is None
    descriptor.set_queryable("totals")
    assert descriptor.is_queryable() and descriptor.get_queryable_state_name() == "totals"
    with pytest.raises(StateError, match="already has the queryable name 'totals'"):
        descriptor.set_queryable("others")
    with pytest.raises(StateError, match="not empty"):
        ValueStateDescriptor("total").set_queryable("")


def keyed() -> Any:
    env = StreamExecutionEnvironment.get_execution_environment()
    return env, env.from_collection([1, 2, 3, 4]).key_by(lambda number: number % 2)


def test_a_stream_as_queryable_state_says_what_it_is() -> None:
    _, stream = keyed()
    kept = stream.as_queryable_state("sums", ReducingStateDescriptor("sum", lambda a, b: a + b)).uid("sums")
    assert kept.get_queryable_state_name() == "sums"
    assert kept.get_state_descriptor().get_queryable_state_name() == "sums"


def test_a_stream_as_queryable_state_needs_no_sink() -> None:
    with in_process():
        env, stream = keyed()
        stream.as_queryable_state("last").name("last")
        env.execute()


def test_state_that_cannot_be_kept_from_records_is_refused() -> None:
    _, stream = keyed()
    with pytest.raises(TypeMismatchError, match="call set_queryable"):
        stream.as_queryable_state("all", ListStateDescriptor("all"))
    named = ValueStateDescriptor("value")
    named.set_queryable("other")
    with pytest.raises(StateError, match="already has the queryable name 'other'"):
        stream.as_queryable_state("last", named)


def located(**changes: Any) -> Locations:
    answer = {
        "job_id": "job",
        "max_parallelism": 128,
        "operators": [
            {"uid": "one", "name": "count", "stage": 1, "parallelism": 2},
            {"uid": "two", "name": "count", "stage": 1, "parallelism": 1},
            {"uid": "three", "name": "windows", "stage": 1, "parallelism": 2},
        ],
        "slots": [
            {"stage": 1, "partition": index, "host": "h", "port": 1, "path": "", "incarnation": "i", "ready": not index}
            for index in range(2)
        ],
        "secret": "00ff",
    }
    return Locations.of(answer | changes)


def test_operators_are_found_by_uid_and_by_a_name_that_only_one_has() -> None:
    locations = located()
    assert locations.operator("two").uid == "two"
    assert locations.operator("windows").uid == "three"
    for name, hint in (("count", "use a uid: one, two"), ("windws", "did you mean 'windows'")):
        with pytest.raises(QueryError, match=hint) as caught:
            locations.operator(name)
        assert caught.value.problem is QueryProblem.UNKNOWN_OPERATOR


def test_a_key_lives_where_its_operators_parallelism_says() -> None:
    locations = located()
    for key in ("a", 7, (1, "b"), None):
        expected = partition_of_key_group(key_group(key, 128), 128, 2)
        assert locations.partition_of(locations.operator("one"), key) == expected
        assert locations.partition_of(locations.operator("two"), key) == 0


def test_a_slot_that_may_not_answer_is_being_restored() -> None:
    locations = located()
    assert [slot.partition for slot in locations.slots_of(locations.operator("two"))] == [0]
    with pytest.raises(QueryError) as caught:
        locations.slots_of(locations.operator("one"))
    assert caught.value.problem is QueryProblem.RESTORING


class _Answering(BaseHTTPRequestHandler):
    """Stands by, or leads, or has a bad day: as the path of the server says."""

    answers: ClassVar[dict[int, tuple[int, dict[str, str], Any]]] = {}

    def do_GET(self) -> None:
        status, headers, body = self.answers[self.server.server_address[1]]  # type: ignore[index]
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(raw))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, format: str, *args: Any) -> None: ...


@pytest.fixture
def servers() -> Iterator[list[int]]:
    found = [HTTPServer(("127.0.0.1", 0), _Answering) for _ in range(2)]
    for server in found:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield [server.server_address[1] for server in found]
    for server in found:
        server.shutdown()
        server.server_close()


def test_the_server_that_leads_is_asked_instead_of_one_that_stands_by(servers: list[int]) -> None:
    stands_by, leads = servers
    where = f"http://127.0.0.1:{leads}/jobs/x/state/location"
    _Answering.answers = {stands_by: (307, {"Location": where}, {"errors": ["elsewhere"]}), leads: (200, {}, {"a": 1})}
    locator = HttpLocator("127.0.0.1", stands_by, None, "x")
    assert locator.locate() == {"a": 1}
    _Answering.answers[stands_by] = (500, {}, {})
    assert locator.locate() == {"a": 1}  # and from now on


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ((401, {}, {"errors": ["no token"]}), QueryProblem.UNAUTHORIZED),
        ((404, {}, {"errors": ["no job"], "code": "UNKNOWN_JOB"}), QueryProblem.UNKNOWN_JOB),
        ((503, {}, {"errors": ["later"], "code": "RESTORING"}), QueryProblem.RESTORING),
        ((503, {}, {"errors": ["nobody leads"]}), QueryProblem.UNREACHABLE),
        ((500, {}, {}), QueryProblem.FAILED),
        ((200, {}, b"not json"), QueryProblem.UNREACHABLE),
        ((307, {"Location": "nowhere"}, {}), QueryProblem.FAILED),
    ],
)
def test_what_a_server_refuses(servers: list[int], answer: Any, problem: QueryProblem) -> None:
    _Answering.answers = dict.fromkeys(servers, answer)
    with pytest.raises(QueryError) as caught:
        HttpLocator("127.0.0.1", servers[0], None, "x").locate()
    assert caught.value.problem is problem
