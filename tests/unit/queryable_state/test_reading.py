"""A running job's state, read by its control socket, over HTTP, on the command line and with SQL. No Spark."""

from __future__ import annotations

import asyncio
import itertools
import json
import pickle
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from headwater.cli.main import main
from headwater.common.query_error import QueryError, QueryProblem
from headwater.queryable_state import AsyncQueryableStateClient, QueryableStateClient
from headwater.queryable_state.control_locator import ControlLocator
from headwater.queryable_state.reader import StateReader
from headwater.queryable_state.sql import run_sql
from headwater.runtime.job.handle import LocalJobClient
from headwater.runtime.job.run_directory import RunDirectory
from tests.unit.queryable_state.queried_job import KEYS, RECORDS, start
from tests.unit.server.rest_server import Rest, serving
from tests.waiting import wait_until

PER_KEY = RECORDS // KEYS


class Queried:
    def __init__(self, folder: Path, client: LocalJobClient, rest: Rest) -> None:
        self.folder = folder
        self.job_id = str(client.get_job_id())
        self.client = client
        self.rest = rest
        directory = RunDirectory(str(folder / "state"))
        wait_until(lambda: bool(directory.cards()), "the job")
        (card,) = directory.cards()
        self.reader = StateReader(ControlLocator(directory, card))


@pytest.fixture(scope="module", params=["heap", "rocksdb"])
def queried(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Queried]:
    folder = tmp_path_factory.mktemp(request.param)
    client = start(folder, request.param)
    with serving(folder) as rest:
        found = Queried(folder, client, rest)
        wait_until(lambda: _all_are_in(found.reader), "the last checkpoint", 60)
        yield found
    client.cancel().result()


def _all_are_in(reader: StateReader) -> bool:
    """Whether the last checkpoint has all numbers, in all states."""
    counts = [row.value for row in reader.scan("all", "count").rows]
    return counts == [PER_KEY] * KEYS and len(reader.scan("newest", "newest").rows) == KEYS


def test_every_kind_of_state_has_a_value(queried: Queried) -> None:
    reader, key = queried.reader, "key-03"
    numbers = [number for number in range(RECORDS) if number % KEYS == 3]
    expected = {
        ("all", "count"): PER_KEY,
        ("everything", "last"): numbers[-3:],
        ("all", "by parity"): {"even": numbers[-2], "odd": numbers[-1]},
        ("all", "mean"): sum(numbers) / PER_KEY,
        ("newest", "newest"): numbers[-1],
    }
    for (operator, state), value in expected.items():
        for isolation in ("committed", "live"):
            (found,) = reader.get(operator, state, [key], isolation)
            assert found.value == value, (operator, state, isolation)
            assert (found.epoch is None) == (isolation == "live")


def test_windows_show_what_they_hold(queried: Queried) -> None:
    (described,) = [each for each in queried.reader.describe() if each["uid"] == "windows"]
    (state,) = described["states"]
    (found,) = queried.reader.get("windows", state["name"], ["key-00"])
    (entry,) = found.value
    assert entry["namespace"] == 0
    assert entry["value"] == sum(range(0, RECORDS, KEYS)) / PER_KEY
    assert state["window_ms"] == 24 * 3600 * 1000


def test_what_has_expired_is_not_seen(queried: Queried) -> None:
    assert not any(found.found for found in queried.reader.get("all", "gone", ["key-00", "key-01"]))
    assert queried.reader.scan("all", "gone").rows == []


def test_many_keys_at_once_in_their_order(queried: Queried) -> None:
    keys = ["key-07", "nobody", "key-01", 42, (1, "a")]
    found = queried.reader.get("all", "count", keys)
    assert [each.key for each in found] == keys
    assert [each.found for each in found] == [True, False, True, False, False]


def test_pages_of_a_scan_have_every_key_once_and_in_order(queried: Queried) -> None:
    for limit in (1, 3, 7, 100):
        rows = list(queried.reader.scan_all("all", "count", limit=limit))
        assert [row.key for row in rows] == [f"key-{number:02d}" for number in range(KEYS)]
        assert {row.value for row in rows} == {PER_KEY}


def test_ranges_and_prefixes(queried: Queried) -> None:
    reader = queried.reader
    page = reader.scan("all", "count", prefix="key-1")
    assert [row.key for row in page.rows] == [f"key-1{digit}" for digit in range(10)]
    page = reader.scan("all", "count", start="key-03", stop="key-05")
    assert [row.key for row in page.rows] == ["key-03", "key-04"] and page.next_page is None
    assert reader.scan("all", "count", start=1, stop=5).rows == []


def test_what_there_is_with_types_and_sizes(queried: Queried) -> None:
    found = {each["uid"]: each for each in queried.rest.get(f"/jobs/{queried.job_id}/state")["operators"]}
    states = {state["name"]: state for state in found["all"]["states"]}
    assert states["count"]["kind"] == "value" and states["count"]["queryable_name"] == "counts"
    assert states["count"]["type"] is not None and states["count"]["entries"] == KEYS
    keys_and_counts = sum(len(pickle.dumps((f"key-{number:02d}", PER_KEY))) for number in range(KEYS))
    assert keys_and_counts / 3 < states["count"]["estimated_bytes"] < 3 * keys_and_counts
    assert states["last"]["estimated_bytes"] > states["count"]["estimated_bytes"]
    assert all(state["estimated_bytes"] for each in found.values() for state in each["states"] if state["entries"])
    assert states["gone"]["ttl"] and states["by parity"]["kind"] == "map"


def test_four_distinct_errors(queried: Queried) -> None:
    base = f"/jobs/{queried.job_id}/state"
    for path, status, code, hint in (
        (f"/jobs/{'f' * 32}/state/all/count/x", 404, "UNKNOWN_JOB", "not found"),
        (f"{base}/al/count/x", 404, "UNKNOWN_OPERATOR", "'all'"),
        (f"{base}/all/cuont/x", 404, "UNKNOWN_STATE", "'count'"),
        (f"{base}/all/count/nobody", 404, "UNKNOWN_KEY", "nobody"),
        (f"{base}/all/count/%7Bbad", 400, "BAD_KEY", "JSON"),
        (f"{base}/all/count?keys=%5B1", 400, "BAD_KEY", "JSON"),
        (f"{base}/all/count?page=zz", 400, "BAD_REQUEST", "page"),
        (f"{base}/all/count?limit=0", 400, "BAD_REQUEST", "limit"),
    ):
        answer = queried.rest.ask("GET", path)
        assert (answer.status, answer.json["code"]) == (status, code), (path, answer.raw)
        assert hint in answer.errors[0]
    assert queried.rest.ask("GET", f"{base}/all/count/x?isolation=dirty").status == 400


def test_values_over_http(queried: Queried) -> None:
    base = f"/jobs/{queried.job_id}/state/all/count"
    found = queried.rest.get(f"{base}/key-01")
    assert found["key"] == "key-01" and found["value"] == PER_KEY and found["epoch"] >= 0
    assert queried.rest.get(f"{base}/%22key-01%22?isolation=live") == {**found, "epoch": None}
    many = queried.rest.get(f"{base}?keys=key-01,nobody")["values"]
    assert [each.get("found", True) for each in many] == [True, False]
    page = queried.rest.get(f"{base}?prefix=key-1&limit=4")
    assert [each["key"] for each in page["values"]] == ["key-10", "key-11", "key-12", "key-13"]
    page = queried.rest.get(f"{base}?prefix=key-1&limit=100&page={page['next-page']}")
    assert len(page["values"]) == 6 and page["next-page"] is None


def test_the_client_asks_by_operator_and_by_queryable_name(queried: Queried) -> None:
    with QueryableStateClient("127.0.0.1", queried.rest.port) as client:
        assert client.get(queried.job_id, "all", "count", "key-01").value == PER_KEY
        assert client.get_kv_state(queried.job_id, "counts", "key-01").result() == PER_KEY
        assert client.get_kv_state(queried.job_id, "newest", "key-01").result() == RECORDS - KEYS + 1
        with pytest.raises(QueryError, match="did you mean 'counts'") as caught:
            client.get_kv_state(queried.job_id, "count", "key-01").result()
        assert caught.value.problem is QueryProblem.UNKNOWN_STATE
        with pytest.raises(QueryError) as caught:
            client.get("f" * 32, "all", "count", "key-01")
        assert caught.value.problem is QueryProblem.UNKNOWN_JOB


def test_the_client_of_an_event_loop(queried: Queried) -> None:
    async def read() -> list[object]:
        async with AsyncQueryableStateClient("127.0.0.1", queried.rest.port) as client:
            gets = (client.get(queried.job_id, "all", "count", f"key-{number:02d}") for number in range(KEYS))
            return [found.value for found in await asyncio.gather(*gets)]

    assert asyncio.run(read()) == [PER_KEY] * KEYS


def test_sql_joins_states_of_one_epoch(queried: Queried) -> None:
    result = run_sql(
        queried.reader,
        """
        with counted as (select key, value as n from "all".count)
        select count(*), sum(n), max(m.value) from counted join "all"."by parity" m using (key)
        """,
    )
    assert result.rows == [(2 * KEYS, 2 * RECORDS, RECORDS - 1)]
    assert result.epoch is not None


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("selec 1", QueryProblem.BAD_REQUEST),
        ('drop table "all".count', QueryProblem.BAD_REQUEST),
        ("select * from nothing", QueryProblem.BAD_REQUEST),
        ("select * from read_csv('/etc/passwd')", QueryProblem.BAD_REQUEST),
        ("select nothing from newest.newest", QueryProblem.BAD_REQUEST),
        ("select * from nothing.here", QueryProblem.UNKNOWN_OPERATOR),
        ('select * from "all".nothing', QueryProblem.UNKNOWN_STATE),
    ],
)
def test_a_query_that_cannot_be_run(queried: Queried, query: str, problem: QueryProblem) -> None:
    with pytest.raises(QueryError) as caught:
        run_sql(queried.reader, query)
    assert caught.value.problem is problem


def test_the_command_line(queried: Queried, capsys: pytest.CaptureFixture[str]) -> None:
    here = ["--state-dir", str(queried.folder / "state")]

    def run(*arguments: str, code: int = 0) -> str:
        assert main(["state", *arguments]) == code
        return capsys.readouterr().out

    assert "by parity" in run("ls", "queried", *here)
    assert f"key-01  {PER_KEY}  (epoch " in run("get", "queried", "all", "count", "key-01", *here)
    assert "nobody has no value" in run("get", "queried", "all", "count", "nobody", *here, code=1)
    lines = run("scan", "queried", "all", "count", "--prefix", "key-0", "--limit", "2", "--json", *here).splitlines()
    assert [json.loads(line).get("key") for line in lines] == ["key-00", "key-01", None]
    watched = run("watch", "queried", "all", "count", "key-01", "--epochs", "1", *here)
    assert watched.startswith("--- epoch ") and f"key-01  {PER_KEY}" in watched
    assert f"{RECORDS}" in run("sql", "queried", 'select sum(value) from "all".count', *here)
    server = f"127.0.0.1:{queried.rest.port}"
    assert f"key-01  {PER_KEY}" in run("get", queried.job_id, "all", "count", "key-01", "-m", server)


@pytest.mark.parametrize("isolation", ["committed", "live"])
def test_a_watch_says_between_which_epochs_it_saw_changes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], isolation: str
) -> None:
    client = start(tmp_path, rate=2000)
    try:
        wait_until(lambda: client.progress()["epoch"] >= 1, "the first epochs")
        words = ["watch", "queried", "all", "count", "key-03", "--epochs", "3", "--isolation", isolation]
        words += ["--state-dir", str(tmp_path / "state")]
        assert main(["state", *words]) == 0
        headings = [line for line in capsys.readouterr().out.splitlines() if line.startswith("---")]
        assert main(["state", *words, "--json"]) == 0
        rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    finally:
        client.cancel().result()
    assert len(headings) == len(rows) == 3
    if isolation == "live":
        assert headings == ["--- live"] * 3 and [row["since"] for row in rows] == [None] * 3
        return
    assert re.fullmatch(r"--- epoch \d+", headings[0])
    for before, heading in itertools.pairwise(headings):
        epoch, since = map(int, re.findall(r"^--- epoch (\d+), changes since epoch (\d+)$", heading)[0])
        assert int(before.split()[2].rstrip(",")) <= since < epoch
    assert rows[0]["since"] is None
    assert all(before["epoch"] <= row["since"] < row["epoch"] for before, row in itertools.pairwise(rows))


def test_a_token_is_needed_where_the_server_has_one(queried: Queried) -> None:
    with serving(queried.folder, **{"headwater.server.token": "x" * 40}) as rest:
        for path in ("", "/location", "/all/count", "/all/count/key-01"):
            url = f"/jobs/{queried.job_id}/state{path}"
            assert Rest(rest.port).ask("GET", url).status == 401
            assert Rest(rest.port).ask("GET", url, token="wrong").status in (401, 403)
            assert rest.ask("GET", url).status == 200
        with QueryableStateClient("127.0.0.1", rest.port, "x" * 40) as client:
            assert client.get(queried.job_id, "all", "count", "key-01").value == PER_KEY
        with QueryableStateClient("127.0.0.1", rest.port) as client, pytest.raises(QueryError) as caught:
            client.get(queried.job_id, "all", "count", "key-01")
        assert caught.value.problem is QueryProblem.UNAUTHORIZED


def test_a_job_that_ended_has_no_state(tmp_path: Path) -> None:
    client = start(tmp_path)
    wait_until(lambda: client.progress()["epoch"] >= 0, "an epoch")
    client.cancel().result()
    with serving(tmp_path) as rest:
        answer = rest.ask("GET", f"/jobs/{client.get_job_id()}/state")
        assert (answer.status, answer.json["code"]) == (404, "UNKNOWN_JOB")
