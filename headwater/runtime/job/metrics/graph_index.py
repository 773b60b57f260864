"""Finds the vertices and edges that acknowledgements speak of. Made once per plan."""

from __future__ import annotations

from dataclasses import dataclass

from headwater.graph.chains import chain_heads, is_chained
from headwater.graph.plan import Exchange, JobPlan
from headwater.runtime.job.vertices import Vertex, vertex_id, vertices_of
from headwater.runtime.stage.edge_ids import edge_id


@dataclass(frozen=True)
class JobEdge:
    """One arrow of the job graph."""

    source: str
    """Id of a vertex."""
    target: str
    ship_strategy: str


class GraphIndex:
    """Vertices by id and operator, edges by the ids that chunks carry."""

    def __init__(self, plan: JobPlan) -> None:
        self.plan = plan
        self.vertices: dict[str, Vertex] = {vertex.id: vertex for vertex in vertices_of(plan)}
        operators = [operator for stage in plan.stages for operator in stage.operators]
        uids = {source.id: source.uid for source in plan.sources} | {each.id: each.uid for each in operators}
        heads = chain_heads(plan)
        self.uid_of: dict[int, str] = uids
        self.names: dict[str, str] = {source.uid: f"Source: {source.name}" for source in plan.sources}
        self.names |= {each.uid: f"Sink: {each.name}" if each.sink is not None else each.name for each in operators}
        self.source_uids = {source.uid for source in plan.sources}
        self.sink_uids = {each.uid for each in operators if each.sink is not None}
        self.limited = {source.id for source in plan.sources if getattr(source.source, "rate_per_second", None)}
        """Sources that are asked for what is due, and no more."""
        self.vertex_of: dict[str, str] = {uids[node]: vertex_id(uids[head]) for node, head in heads.items()}
        """{uid of a source or operator, type checks included: its vertex}"""
        self.heads: set[str] = {uids[head] for head in heads.values()}
        self.edges: list[JobEdge] = []
        self.edge_number: dict[int, int] = {}
        """{edge of chunks: its number in `edges`}"""
        self.borders: dict[str, list[int]] = {}
        """{uid of an operator: its edges to other vertices of its own stage, which no chunk travels}"""
        for consumer in operators:
            for position, spec in enumerate(consumer.inputs):
                if is_chained(consumer):
                    continue
                number = len(self.edges)
                ship = Exchange.FORWARD if spec.chained else spec.exchange
                source, target = self.vertex_of[uids[spec.upstream]], self.vertex_of[consumer.uid]
                self.edges.append(JobEdge(source, target, ship.name))
                if spec.chained:
                    self.borders.setdefault(uids[spec.upstream], []).append(number)
                else:
                    self.edge_number[edge_id(consumer.id, position)] = number
        self.sources_of: dict[str, frozenset[int]] = {
            vertex_id(each.uid): frozenset({each.id}) for each in plan.sources
        }
        """{vertex: the sources whose records reach it}"""
        for vertex in self.vertices.values():
            for each in vertex.inputs:
                known = self.sources_of.get(vertex.id, frozenset())
                self.sources_of[vertex.id] = known | self.sources_of[each.vertex]
