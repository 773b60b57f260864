"""Transformations: the nodes that the API builds while the program runs.

Nodes are mutable until the job is planned, because `name()`, `uid()` and `set_parallelism()` are called after the node
was made. Sources and operators are *physical*: they become part of the plan. Partitionings, unions and side outputs are
*virtual*: they only say how records reach the next operator, and the planner turns them into edges.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

from headwater.common.config_options import ConfigOption
from headwater.common.connector import Sink
from headwater.graph.plan import Exchange, Splitter
from headwater.operators.base import Operator

if TYPE_CHECKING:
    from headwater.common.typeinfo import TypeInformation

_construction_order = itertools.count(1)


class ChainingStrategy(Enum):
    """Whether the operator before may call this one directly. `HEAD`: it may not, but this one may call the next."""

    ALWAYS = "always"
    HEAD = "head"
    NEVER = "never"


@dataclass(eq=False, kw_only=True)
class Transformation:
    """One node. `id` counts nodes in the order of construction, so an input always has a smaller id."""

    name: str
    id: int = field(default_factory=lambda: next(_construction_order))
    output_type: TypeInformation | None = None
    """The type of the records that leave the node. None: any Python object."""

    def inputs(self) -> tuple[Transformation, ...]:
        """The nodes that records come from, in the order of input indexes."""
        return ()


@dataclass(eq=False, kw_only=True)
class PhysicalTransformation(Transformation):
    """A node that becomes part of the plan."""

    kind: str
    """The word for the node in messages: `map`, `keyed process`, `sink` ..."""
    uid: str | None = None
    uid_hash: str | None = None
    description: str | None = None
    parallelism: int | None = None
    """None: the job's default."""
    parallelism_fixed: bool = False
    """True: the node cannot run at another parallelism (a collection is read by one task)."""
    parallelism_of_input: bool = False
    """True: without a parallelism of its own, the node has that of the node it reads from, not the job's."""
    max_parallelism: int | None = None
    checks_output: bool = False
    """True: `output_type` was declared here and every record is checked against it."""


@dataclass(eq=False, kw_only=True)
class SourceTransformation(PhysicalTransformation):
    """Where records come from. `source` is a `common.connector.Source` or a `DataFrameSource`."""

    source: Any
    bounded: bool
    kind: str = "source"


@dataclass(eq=False, kw_only=True)
class OperatorTransformation(PhysicalTransformation):
    """An operator or a sink.

    `factory` must be picklable and makes a fresh operator; `configured` names the factory's keyword arguments whose
    values are only known when the job is planned: {argument: option}.
    """

    upstreams: tuple[Transformation, ...]
    factory: Callable[..., Operator]
    function: Any = None
    """The user's object inside the factory, for errors that say which part of it cannot be pickled."""
    configured: Mapping[str, ConfigOption[Any]] = field(default_factory=dict)
    keyed: bool = False
    needs_slot: bool = False
    """Must run in a slot: it has keyed state, timers or operator state."""
    keeps_state_per_split: bool = False
    """In stage 0, the runner keeps its state with each split. It needs a slot only after a shuffle."""
    needs_ticks: bool = False
    """It must see processing time pass even without data."""
    sink: Sink | None = None
    chaining: ChainingStrategy = ChainingStrategy.ALWAYS

    def inputs(self) -> tuple[Transformation, ...]:
        return self.upstreams


@dataclass(eq=False, kw_only=True)
class PartitionTransformation(Transformation):
    """Virtual: how records of `upstream` are assigned to partitions of the next operator."""

    upstream: Transformation
    exchange: Exchange
    key_selector: Callable[[Any], Any] | None = None
    key_type: TypeInformation | None = None
    """If set, every key is checked against this type when records are routed."""
    partitioner: Callable[[Any, int], int] | None = None
    splitter: Splitter | None = None

    def inputs(self) -> tuple[Transformation, ...]:
        return (self.upstream,)


@dataclass(eq=False, kw_only=True)
class UnionTransformation(Transformation):
    """Virtual: the records of all `upstreams`, as one stream."""

    upstreams: tuple[Transformation, ...]

    def inputs(self) -> tuple[Transformation, ...]:
        return self.upstreams


@dataclass(eq=False, kw_only=True)
class SideOutputTransformation(Transformation):
    """Virtual: the records that `upstream` emitted under `tag_id`."""

    upstream: Transformation
    tag_id: str

    def inputs(self) -> tuple[Transformation, ...]:
        return (self.upstream,)


def ancestors(node: Transformation) -> list[Transformation]:
    """`node` and all nodes whose records reach it, in the order of construction."""
    reached = {node.id: node}
    pending = [node]
    while pending:
        new = [upstream for upstream in pending.pop().inputs() if upstream.id not in reached]
        reached.update((upstream.id, upstream) for upstream in new)
        pending += new
    return [reached[id] for id in sorted(reached)]


def source_names(node: Transformation) -> str:
    """The names of the sources whose records reach `node`, for messages: `payments`, or `payments, refunds`."""
    sources = (each for each in ancestors(node) if isinstance(each, SourceTransformation))
    return ", ".join(dict.fromkeys(source.name for source in sources))
