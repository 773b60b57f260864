"""Flink's JSON of thread dumps and flame graphs, made of `ThreadStack`s."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

NO_FLAME_GRAPH: Mapping[str, Any] = {"endTimestamp": -2, "data": None}
"""Flink's answer where there is none: nothing can be sampled there."""

Stack = Mapping[str, Any]


def thread_dump(threads: Iterable[tuple[str, Stack]]) -> dict[str, Any]:
    """`.../thread-dump`: threads with their names."""
    return {
        "threadInfos": [{"threadName": name, "stringifiedThreadInfo": _text(name, stack)} for name, stack in threads]
    }


def _text(name: str, stack: Stack) -> str:
    lines = [f'"{name}" Id={stack["id"]} {"RUNNABLE" if stack["on_cpu"] else "WAITING"}']
    return "\n".join([*lines, *(f"\tat {frame}" for frame in reversed(stack["frames"]))]) + "\n\n"


def flame_graph(stacks: Iterable[Stack], end_ms: int) -> dict[str, Any]:
    """`.../flamegraph`: how many stacks go through each frame. Called by `name` from the one above."""
    root: dict[str, Any] = {"name": "root", "value": 0, "children": {}}
    for stack in stacks:
        node = root
        node["value"] += 1
        for frame in stack["frames"]:
            node = node["children"].setdefault(frame, {"name": frame, "value": 0, "children": {}})
            node["value"] += 1
    return {"endTimestamp": end_ms, "data": _listed(root)}


def _listed(node: dict[str, Any]) -> dict[str, Any]:
    children = sorted(node["children"].values(), key=lambda child: -child["value"])
    return {"name": node["name"], "value": node["value"], "children": [_listed(child) for child in children]}
