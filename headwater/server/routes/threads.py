"""Thread dumps of this server and of slots, and flame graphs of what slots with keyed state spend their time on."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from headwater.common.machine.thread_stacks import thread_stacks
from headwater.queryable_state.reader import StateReader
from headwater.server.http_error import HttpError
from headwater.server.now import now_ms
from headwater.server.route import Call, Field, Kind, Route
from headwater.server.routes import taskmanagers, vertices
from headwater.server.shapes import threads as shape

SAMPLES = 20
SAMPLE_SECONDS = 0.04


async def of_server(call: Call) -> dict[str, Any]:
    stacks = await asyncio.to_thread(thread_stacks)
    return shape.thread_dump((stack.name, stack._asdict()) for stack in stacks)


async def of_executor(call: Call) -> dict[str, Any]:
    """The threads of the slots there: they are processes of their own."""
    manager, description = await taskmanagers.executor(call)
    jobs = [job for job in await call.services.open_jobs() if job.job_id == description["job_id"]]
    if not jobs:
        raise HttpError(404, f"Could not find TaskExecutor {manager['id']}")
    found = await call.services.state_readers.read(jobs[0], lambda reader: reader.threads())
    names = {description.get("slot_host"): description["host"]}
    return shape.thread_dump(
        (f"slot {slot.stage}/{slot.partition}: {stack['name']}", stack)
        for slot, stacks in found
        if names.get(slot.host, slot.host) == manager["path"]
        for stack in stacks
    )


async def flame_graph(call: Call) -> dict[str, Any]:
    facts, job = await vertices.facts_of(call), await call.job()
    if job.ended:
        return dict(shape.NO_FLAME_GRAPH)
    uids = {operator["uid"] for operator in facts.vertex["operators"]}
    only = call.query.get("subtaskindex")
    states = {"on_cpu": (True,), "off_cpu": (False,)}.get(call.query.get("type", "full").lower(), (True, False))

    def sample(reader: StateReader) -> list[dict[str, Any]] | None:
        stages = {place.stage for place in reader.locations().operators if place.uid in uids}
        if not stages:
            return None
        stacks: list[dict[str, Any]] = []
        for _ in range(SAMPLES):
            time.sleep(SAMPLE_SECONDS)
            for slot, found in reader.threads():
                if slot.stage in stages and only in (None, slot.partition):
                    stacks += [stack for stack in found if stack["processing"] and stack["on_cpu"] in states]
        return stacks

    stacks = await call.services.state_readers.read(job, sample)
    return dict(shape.NO_FLAME_GRAPH) if stacks is None else shape.flame_graph(stacks, now_ms())


TYPE = Field(
    "type", Kind.TEXT, "full: all samples; on_cpu, off_cpu: where the thread worked, or waited",
    ("full", "on_cpu", "off_cpu", "FULL", "ON_CPU", "OFF_CPU"),
)  # fmt: skip
SUBTASK = Field("subtaskindex", Kind.INTEGER, "of one subtask only")
ROUTES = (
    Route("GET", "/jobmanager/thread-dump", of_server, "What the threads of the server do right now"),
    Route("GET", f"{taskmanagers.ONE}/thread-dump", of_executor, "What the threads of its slots with keyed state do"),
    Route(
        "GET", f"{vertices.VERTEX}/flamegraph", flame_graph,
        "Where a vertex with keyed state spends its time, sampled for a second", (TYPE, SUBTASK),
    ),
)  # fmt: skip
