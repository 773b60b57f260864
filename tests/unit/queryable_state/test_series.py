"""A series of a running job, read over HTTP, by the client and on the command line. No Spark."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headwater.cli.main import main
from headwater.common import Configuration, Time, WatermarkStrategy
from headwater.common.query_error import QueryError, QueryProblem
from headwater.datastream import StreamExecutionEnvironment
from headwater.datastream.connectors.archive import SqliteArchive
from headwater.datastream.connectors.data_generator import DataGeneratorSource
from headwater.datastream.window import TumblingEventTimeWindows
from headwater.queryable_state import AsyncQueryableStateClient, QueryableStateClient
from headwater.runtime.job.handle import LocalJobClient
from tests.unit.server.rest_server import Rest, serving
from tests.waiting import wait_until

HOUR = 3_600_000
EVENTS = 250
"""One in a quarter of an hour, of the keys ("a", 0), ("a", 1) and ("b, c", 0) in turn; the last window stays open."""
KEYS = [("a", 0), ("a", 1), ("b, c", 0)]


def event(number: int) -> tuple[tuple[str, int], int]:
    return KEYS[number % 3], min(number, EVENTS) * HOUR // 4


def start(folder: Path) -> LocalJobClient:
    settings = {
        "headwater.master": "in-process",
        "headwater.state.dir": str(folder / "state"),
        "execution.checkpointing.dir": str(folder / "job"),
        "execution.checkpointing.interval": "50 ms",
        "restart-strategy.type": "none",
    }
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
    env.set_parallelism(2)
    watermarks = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda each, _: each[1])
    events = env.from_source(DataGeneratorSource(event, rate_per_second=2000), WatermarkStrategy.no_watermarks(), "e")
    hours = (
        events.set_parallelism(1)
        .filter(lambda each: each[1] < EVENTS * HOUR // 4)
        .assign_timestamps_and_watermarks(watermarks)
        .map(lambda each: (each[0], 1))
        .key_by(lambda each: each[0])
        .window(TumblingEventTimeWindows.of(Time.hours(1)))
    )
    hours.as_queryable_series("hits", lambda a, b: (a[0], a[1] + b[1]), SqliteArchive(folder / "archive.db"))
    client = env.execute_async("hits")
    assert isinstance(client, LocalJobClient)
    return client


def expected(key: tuple[str, int]) -> list[dict[str, Any]]:
    counts: dict[int, int] = {}
    for number in range(EVENTS):
        if event(number)[0] == key:
            hour = event(number)[1] // HOUR * HOUR
            counts[hour] = counts.get(hour, 0) + 1
    last = (EVENTS - 1) // 4 * HOUR
    return [
        {"start": hour, "end": hour + HOUR, "value": [list(key), count], "status": "open" if hour == last else "closed"}
        for hour, count in counts.items()
    ]


class Queried:
    def __init__(self, folder: Path, client: LocalJobClient, rest: Rest) -> None:
        self.folder, self.client, self.rest = folder, client, rest
        self.job_id = str(client.get_job_id())


@pytest.fixture(scope="module")
def queried(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Queried]:
    folder = tmp_path_factory.mktemp("series")
    client = start(folder)
    with serving(folder) as rest, QueryableStateClient.of(client) as reader:
        found = Queried(folder, client, rest)
        total = [sum(each["value"][1] for each in expected(key)) for key in KEYS]

        def all_are_in() -> bool:
            sums = [sum(each.value[1] for each in reader.series(found.job_id, "hits", key).windows) for key in KEYS]
            return sums == total

        wait_until(all_are_in, "the last checkpoint", 60)
        yield found
    client.cancel().result()


def get(queried: Queried, path: str) -> tuple[int, Any]:
    answer = queried.rest.ask("GET", f"/jobs/{queried.job_id}/series{path}")
    return answer.status, json.loads(answer.raw)


@pytest.mark.parametrize("key", KEYS)
def test_over_http(queried: Queried, key: tuple[str, int]) -> None:
    text = json.dumps(list(key)).replace(" ", "%20").replace('"', "%22")
    status, answer = get(queried, f"/hits/{text}")
    assert status == 200 and answer["windows"] == expected(key)
    assert (answer["series"], answer["key"]) == ("hits", list(key)) and answer["epoch"] >= 0
    status, answer = get(queried, f"/hits/{text}?from=1970-01-01T02:00Z&to={4 * HOUR}")
    assert answer["windows"] == [each for each in expected(key) if 2 * HOUR <= each["start"] < 4 * HOUR]


def test_what_series_there_are(queried: Queried) -> None:
    status, answer = get(queried, "")
    assert status == 200
    assert answer == {
        "series": [
            {
                "name": "hits",
                "archive": f"SQLite file {queried.folder}/archive.db",
                "window-ms": HOUR,
                "slide-ms": HOUR,
                "time": "event",
            }
        ]
    }


@pytest.mark.parametrize(
    ("path", "status", "code", "text"),
    [
        ("/hots/a", 404, "UNKNOWN_STATE", "no series 'hots'; did you mean 'hits'?"),
        ("/hits/a?from=yesterday", 400, "BAD_REQUEST", "from is 'yesterday'; expected milliseconds"),
        ("/hits/%7B%22%24bytes%22%3A%22YQ%3D%3D%22%7D", 400, "BAD_KEY", "a key of a series is JSON"),
        ("/hits/%5B1", 400, "BAD_KEY", "it is not JSON"),
        ("/hits-archive/a", 404, "UNKNOWN_STATE", "no series 'hits-archive'"),
    ],
)
def test_errors(queried: Queried, path: str, status: int, code: str, text: str) -> None:
    found, answer = get(queried, path)
    assert (found, answer["code"]) == (status, code) and text in answer["errors"][0]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"key": "\ud800"}, 400),
        ({"key": "["}, 400),
        ({"key": "[" * 100_000}, 400),
        ({"key": "\0"}, 400),
        ({"from_ms": 10**30}, 400),
        ({"from_ms": "1"}, 400),
        ({"series": "../x"}, 404),
        ({}, 200),
    ],
)
def test_what_clients_ask_for_the_archive(queried: Queried, body: dict[str, Any], status: int) -> None:
    asked = {"series": "hits", "key": '"a"', "from_ms": 0, "to_ms": 1, "epoch": 0, **body}
    answer = queried.rest.ask("POST", f"/jobs/{queried.job_id}/series/archive", asked)
    assert answer.status == status, answer.raw


def test_a_key_that_nobody_knows_has_no_windows(queried: Queried) -> None:
    assert get(queried, "/hits/nobody")[1]["windows"] == []


def test_by_the_clients(queried: Queried) -> None:
    key = KEYS[1]
    windows = [(each["start"], each["end"], each["value"], each["status"] == "closed") for each in expected(key)]
    with QueryableStateClient("127.0.0.1", queried.rest.port) as client:
        assert client.series(queried.job_id, "hits", key).windows == windows
        assert client.series(queried.job_id, "hits", key, -5, HOUR).windows == windows[:1]
        with pytest.raises(QueryError, match="no series 'x'; there are: 'hits'") as unknown:
            client.series(queried.job_id, "x", key)
        assert unknown.value.problem is QueryProblem.UNKNOWN_STATE
        with pytest.raises(QueryError, match="a key of a series is JSON"):
            client.series(queried.job_id, "hits", b"a")

    async def ask() -> Any:
        async with AsyncQueryableStateClient("127.0.0.1", queried.rest.port) as client:
            return await client.series(queried.job_id, "hits", key)

    assert asyncio.run(ask()).windows == windows


def test_on_the_command_line(queried: Queried, capsys: pytest.CaptureFixture[str]) -> None:
    where = ["--state-dir", str(queried.folder / "state")]
    arguments = ["state", "series", *where, "hits", "hits", '["a", 0]', "--from", "1970-01-03T13:00", "--json"]
    assert main(arguments) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["windows"] == [each for each in expected(("a", 0)) if each["end"] > 61 * HOUR]
    assert main([*arguments[:-1]]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["FROM", "(UTC)", "TO", "(UTC)", "VALUE", "STATUS"]
    assert lines[-1].startswith(f"({len(answer['windows'])} windows, as of epoch ")
    assert lines[-2].endswith("open") and lines[-2].startswith("1970-01-03 14:00:00  1970-01-03 15:00:00")
