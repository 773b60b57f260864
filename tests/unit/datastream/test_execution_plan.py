"""`get_execution_plan()` has the shape of Flink's, so that Flink's plan visualiser draws it.

The JSON files in `plans` are what PyFlink 2.3.0 printed for the programs beside them.
"""

from __future__ import annotations

import contextlib
import io
import json
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headwater.compat import pyflink_imports

PROGRAMS = sorted((Path(__file__).parent / "plans").glob("*.py"))
PYFLINKS_OWN = ("_stream_key_by_map_operator", "Map, _stream_key_by_map_operator")
"""PyFlink computes keys, and reads side outputs, in operators of their own."""


@pytest.fixture
def pyflink() -> Iterator[None]:
    pyflink_imports.install()
    yield
    pyflink_imports.uninstall()


def plan_of(program: Path) -> Any:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        runpy.run_path(str(program))
    return json.loads(printed.getvalue())


def drawn(plan: Any) -> dict[str, Any]:
    """{what a box says: (kind, parallelism, {arrows into it})}, without the boxes that only PyFlink has."""
    nodes = {node["id"]: node for node in plan["nodes"]}

    def box(number: int) -> str:
        node = nodes[number]
        return box(node["predecessors"][0]["id"]) if node["type"] in PYFLINKS_OWN else node["type"]

    return {
        node["type"]: (
            node["pact"],
            node["contents"],
            node["parallelism"],
            sorted((box(each["id"]), each["ship_strategy"], each["side"]) for each in node.get("predecessors", [])),
        )
        for node in plan["nodes"]
        if node["type"] not in PYFLINKS_OWN
    }


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_the_plan_is_drawn_as_flink_draws_it(pyflink: None, program: Path) -> None:
    plan, recorded = plan_of(program), json.loads(program.with_suffix(".json").read_text(encoding="utf-8"))
    assert drawn(plan) == drawn(recorded)
    assert plan.keys() == recorded.keys()
    assert next(node.keys() for node in plan["nodes"] if node["pact"] == "Operator") == recorded["nodes"][2].keys()
    assert plan["nodes"][0].keys() == recorded["nodes"][0].keys()


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_ids_are_positive_and_name_nodes(pyflink: None, program: Path) -> None:
    nodes = plan_of(program)["nodes"]
    ids = [node["id"] for node in nodes]
    assert len(set(ids)) == len(ids) and min(ids) == 1
    assert {each["id"] for node in nodes for each in node.get("predecessors", [])} <= set(ids)
