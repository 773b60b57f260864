"""The job graph as Flink shows it: vertices, each a chain of operators. Pure.

A stage may have several vertices: all of them run in one process per partition.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from headwater.graph.chains import chain_heads, is_chained
from headwater.graph.describe import is_type_check
from headwater.graph.plan import Exchange, JobPlan, OperatorSpec, SourceSpec


@dataclass(frozen=True)
class VertexOperator:
    """One source, operator or sink of a vertex. `name` is as the job graph shows it: `Source: words`, `Sink: Print`."""

    uid: str
    name: str


@dataclass(frozen=True)
class VertexInput:
    """One edge of the job graph. `ship_strategy` is a name of `graph.plan.Exchange`: HASH, REBALANCE, FORWARD ..."""

    vertex: str
    ship_strategy: str
    operator: str
    """Uid of the operator that reads the edge: the head, as only heads have inputs from elsewhere."""


@dataclass(frozen=True)
class Vertex:
    """A chain of operators, from its head on."""

    id: str
    """32 hex digits, made of the head's uid: the same in every run of the job, and in later versions of it."""
    name: str
    """`Source: words -> Map`; where the chain forks, `Map -> (Filter, Sink: Print)`."""
    stage: int
    parallelism: int
    max_parallelism: int
    operators: tuple[VertexOperator, ...]
    """In topological order: the first one is the head. Checks of declared types, which headwater puts in, are not
    among them."""
    inputs: tuple[VertexInput, ...]

    @property
    def head(self) -> str:
        """Uid of the head."""
        return self.operators[0].uid


def vertex_id(uid: str) -> str:
    """Return the id of the vertex whose head is `uid`. A uid hash that the user set is the id, as in Flink."""
    if re.fullmatch("[0-9A-Fa-f]{32}", uid):
        return uid.lower()
    return hashlib.blake2b(uid.encode(), digest_size=16).hexdigest()


def vertices_of(plan: JobPlan) -> tuple[Vertex, ...]:
    """Return the vertices of the job in topological order."""
    operators = [operator for stage in plan.stages for operator in stage.operators]
    head_of = chain_heads(plan)
    specs: dict[int, SourceSpec | OperatorSpec] = {source.id: source for source in plan.sources}
    specs |= {each.id: each for each in operators}
    shown = {source.id: VertexOperator(source.uid, f"Source: {source.name}") for source in plan.sources}
    shown |= {each.id: VertexOperator(each.uid, _shown_name(each)) for each in operators if not is_type_check(each)}
    found = []
    for head in dict.fromkeys(head_of.values()):
        spec = specs[head]
        inputs = spec.inputs if isinstance(spec, OperatorSpec) else ()
        found.append(
            Vertex(
                id=vertex_id(spec.uid),
                name=_chain_name(head, operators, shown),
                stage=spec.stage if isinstance(spec, OperatorSpec) else 0,
                parallelism=spec.parallelism,
                max_parallelism=plan.max_parallelism,
                operators=tuple(shown[each] for each in head_of if head_of[each] == head and each in shown),
                inputs=tuple(
                    VertexInput(
                        vertex_id(specs[head_of[each.upstream]].uid),
                        Exchange.FORWARD.name if each.chained else each.exchange.name,
                        spec.uid,
                    )
                    for each in inputs
                ),
            )
        )
    return tuple(found)


def plan_json(plan: JobPlan, job_id: str) -> dict[str, Any]:
    """The job graph in the JSON of Flink's REST, `/jobs/:jobid/plan`."""
    nodes = []
    for vertex in vertices_of(plan):
        node: dict[str, Any] = {
            "id": vertex.id,
            "parallelism": vertex.parallelism,
            "operator": "",
            "operator_strategy": "",
            "description": vertex.name.replace(" -> ", "<br/>+- "),
            "optimizer_properties": {},
        }
        if vertex.inputs:
            node["inputs"] = [
                {"num": number, "id": each.vertex, "ship_strategy": each.ship_strategy, "exchange": "pipelined_bounded"}
                for number, each in enumerate(vertex.inputs)
            ]
        nodes.append(node)
    return {"jid": job_id, "name": plan.name, "type": "BATCH" if plan.batch_mode else "STREAMING", "nodes": nodes}


def _shown_name(operator: OperatorSpec) -> str:
    return f"Sink: {operator.name}" if operator.sink is not None else operator.name


def _chain_name(node: int, operators: Sequence[OperatorSpec], shown: dict[int, VertexOperator]) -> str:
    """Flink's name for the chain from `node` on."""
    rest = [_chain_name(each, operators, shown) for each in _chained_to(node, operators, shown)]
    if len(rest) > 1:
        return f"{shown[node].name} -> ({', '.join(rest)})"
    return " -> ".join((shown[node].name, *rest))


def _chained_to(node: int, operators: Sequence[OperatorSpec], shown: dict[int, VertexOperator]) -> list[int]:
    """The operators of the vertex that `node` calls, looking through type checks."""
    found: list[int] = []
    for each in operators:
        if is_chained(each) and each.inputs[0].upstream == node:
            found += [each.id] if each.id in shown else _chained_to(each.id, operators, shown)
    return found
