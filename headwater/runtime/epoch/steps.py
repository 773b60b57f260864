"""The one loop over a stage's input in an epoch. Workers, slots and the in-process engines run this one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, Protocol

from headwater.runtime.epoch import fault


class Step(NamedTuple):
    """One thing for a stage runner to do. `node` is an edge for a chunk and a head operator otherwise."""

    kind: str  # "chunk" | "watermark" | "idle"
    node: int
    value: Any  # payload bytes | watermark | bool


class Runner(Protocol):
    """What the loop needs of a `StageRunner`."""

    def chunk(self, edge: int, payload: memoryview | bytes) -> None: ...

    def advance(self, head: int, watermark: int) -> None: ...

    def idle(self, head: int, idle: bool) -> None: ...


def run_steps(runner: Runner, steps: Iterable[Step], epoch: int) -> Iterator[None]:
    """Apply `steps` in order. Yields after each one, so that the caller can send on what came out."""
    for kind, node, value in steps:
        if kind == "chunk":
            fault.reached("chunk-received", epoch)
            runner.chunk(node, value)
        elif kind == "watermark":
            runner.advance(node, value)
        else:
            runner.idle(node, value)
        yield
