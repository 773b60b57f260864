"""Thread dumps and flame graphs of a running job, in Flink's shapes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from headwater.common.machine.thread_stacks import thread_stacks
from headwater.server.shapes.threads import flame_graph, thread_dump
from tests.unit.server.rest_server import Rest, end, eventually, running, serving, start_job


def test_a_thread_is_where_it_waits() -> None:
    released = threading.Event()

    def waits_for_the_test() -> None:
        released.wait(30)

    thread = threading.Thread(target=waits_for_the_test, name="one that waits")
    thread.start()
    try:
        (found,) = [stack for stack in thread_stacks() if stack.name == "one that waits"]
    finally:
        released.set()
        thread.join()
    assert found.id == thread.ident and not found.on_cpu
    assert any("waits_for_the_test" in frame for frame in found.frames)
    assert found.frames[0].startswith("threading.Thread._bootstrap")
    assert "one that waits" not in [stack.name for stack in thread_stacks()]


def test_a_dump_reads_as_one_of_java() -> None:
    stack = {"id": 7, "on_cpu": True, "frames": ["a.outer:1", "a.inner:2"]}
    assert thread_dump([("main", stack)]) == {
        "threadInfos": [
            {
                "threadName": "main",
                "stringifiedThreadInfo": '"main" Id=7 RUNNABLE\n\tat a.inner:2\n\tat a.outer:1\n\n',
            }
        ]
    }


def test_a_flame_graph_counts_the_stacks_through_each_frame() -> None:
    stacks = [{"frames": frames} for frames in (["a", "b"], ["a", "c"], ["a", "c"], ["d"])]
    leaf: list[Any] = []
    assert flame_graph(stacks, 5) == {
        "endTimestamp": 5,
        "data": {
            "name": "root",
            "value": 4,
            "children": [
                {
                    "name": "a",
                    "value": 3,
                    "children": [
                        {"name": "c", "value": 2, "children": leaf},
                        {"name": "b", "value": 1, "children": leaf},
                    ],
                },
                {"name": "d", "value": 1, "children": leaf},
            ],
        },
    }


class Served:
    def __init__(self, rest: Rest, job_id: str) -> None:
        self.rest, self.job_id = rest, job_id
        self.vertices = {vertex["name"]: vertex["id"] for vertex in rest.get(f"/jobs/{job_id}")["vertices"]}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("threads")
    client = start_job(folder)
    running(client)
    with serving(folder) as rest:
        yield Served(rest, str(client.get_job_id()))
    end(client)


def texts(found: dict[str, Any]) -> list[str]:
    assert set(found) == {"threadInfos"}
    for each in found["threadInfos"]:
        assert set(each) == {"threadName", "stringifiedThreadInfo"}
    return [each["stringifiedThreadInfo"] for each in found["threadInfos"]]


def test_the_threads_of_the_server(served: Served) -> None:
    assert any(
        '"MainThread" Id=' in text and "\tat " in text for text in texts(served.rest.get("/jobmanager/thread-dump"))
    )


def test_the_threads_of_an_executors_slots(served: Served) -> None:
    def dumped() -> list[str]:
        executors = served.rest.get("/taskmanagers")["taskmanagers"]
        return [
            text for each in executors for text in texts(served.rest.get(f"/taskmanagers/{each['id']}/thread-dump"))
        ]

    found = eventually("the first epoch", dumped)
    assert {text.partition(":")[0] for text in found} == {'"slot 1/0', '"slot 1/1'}
    assert len(found) == len(set(found)), "a slot is on one executor"
    assert served.rest.ask("GET", "/taskmanagers/nobody/thread-dump").status == 404


def test_what_a_vertex_spends_its_time_on(served: Served) -> None:
    keyed = next(vertex for name, vertex in served.vertices.items() if not name.startswith("Source"))
    path = f"/jobs/{served.job_id}/vertices/{keyed}/flamegraph"
    found = served.rest.get(path)
    assert found["endTimestamp"] > 0 and found["data"]["name"] == "root" and found["data"]["value"] > 0
    (outermost, *_) = found["data"]["children"]
    assert outermost["value"] <= found["data"]["value"] and outermost["children"]
    busy = served.rest.get(f"{path}?type=on_cpu")["data"]["value"]
    idle = served.rest.get(f"{path}?type=OFF_CPU&subtaskindex=0")["data"]["value"]
    assert busy >= 0 and idle >= 0
    assert served.rest.get(f"{path}?subtaskindex=99")["data"]["value"] == 0
    assert served.rest.ask("GET", f"{path}?type=warm").status == 400
    assert served.rest.ask("GET", f"/jobs/{served.job_id}/vertices/{'f' * 32}/flamegraph").status == 404


def test_a_vertex_without_keyed_state_cannot_be_sampled(served: Served) -> None:
    source = next(vertex for name, vertex in served.vertices.items() if name.startswith("Source"))
    found = served.rest.get(f"/jobs/{served.job_id}/vertices/{source}/flamegraph")
    assert found == {"endTimestamp": -2, "data": None}
