"""The planner's working form: physical nodes and the edges between them. Rules take one and return another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from headwater.common.configuration import Configuration
from headwater.graph.plan import Exchange, Splitter
from headwater.graph.transformation import OperatorTransformation, PhysicalTransformation, SourceTransformation

if TYPE_CHECKING:
    from headwater.common.typeinfo import TypeInformation


@dataclass(frozen=True)
class Edge:
    """Carries the records of `upstream` (of its side output `side_tag`, if set) into input `input_index` of its node.

    `exchange` is None until a rule chooses one; before that, FORWARD means that the user asked for it.
    """

    upstream: int
    input_index: int = 0
    side_tag: str | None = None
    side_type: TypeInformation | None = None
    exchange: Exchange | None = None
    key_selector: Callable[[Any], Any] | None = None
    key_type: TypeInformation | None = None
    partitioner: Callable[[Any, int], int] | None = None
    splitter: Splitter | None = None
    cut: bool = False
    """True: must not be chained, although it is FORWARD."""
    chained: bool = False


@dataclass(frozen=True)
class Node:
    """A source or operator while it is planned. `origin` is the API's transformation; rules do not change it."""

    id: int
    origin: PhysicalTransformation
    edges: tuple[Edge, ...] = ()
    uid: str = ""
    parallelism: int = 0
    stage: int = 0
    needs_slot: bool = False

    @property
    def name(self) -> str:
        return self.origin.name

    @property
    def is_source(self) -> bool:
        return isinstance(self.origin, SourceTransformation)

    @property
    def operator(self) -> OperatorTransformation:
        """The origin of a node that is not a source."""
        assert isinstance(self.origin, OperatorTransformation)
        return self.origin

    def label(self) -> str:
        """The node's name in messages: `operator 'enrich' (map)`."""
        return f"source '{self.name}'" if self.is_source else f"operator '{self.name}' ({self.origin.kind})"


@dataclass(frozen=True)
class LogicalGraph:
    """All nodes of a job by id, each after the nodes that it reads from."""

    nodes: Mapping[int, Node] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes.values())

    def __getitem__(self, node_id: int) -> Node:
        return self.nodes[node_id]

    def map_nodes(self, change: Callable[[Node], Node]) -> LogicalGraph:
        """Return the same graph with every node replaced by `change(node)`, which must keep the id."""
        return replace(self, nodes={node.id: change(node) for node in self})


Rule = Callable[[LogicalGraph, Configuration], LogicalGraph]
"""Returns the graph that it was given, one step closer to a plan. The configuration is resolved."""
