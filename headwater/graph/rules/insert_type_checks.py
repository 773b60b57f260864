from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TypeGuard

from headwater.common.config_options import TYPE_CHECK
from headwater.common.configuration import Configuration
from headwater.common.errors import PlanError
from headwater.common.typeinfo import PickledBytesTypeInfo, TypeInformation
from headwater.graph.checked_key_selector import CheckedKeySelector
from headwater.graph.logical_graph import Edge, LogicalGraph, Node
from headwater.graph.plan import Exchange
from headwater.graph.transformation import OperatorTransformation
from headwater.operators.type_check import TypeCheckOperator


def insert_type_checks(graph: LogicalGraph, settings: Configuration) -> LogicalGraph:
    """Insert a check after every output with a declared type, unless `headwater.type-check` is off.

    The check is chained to the operator that it checks, and all readers of that output now read the check's output. It
    has no state, so its uid may depend on the checked node. Keys with a declared type are checked when records are
    routed.
    """
    if not settings.get(TYPE_CHECK):
        return graph
    nodes: dict[int, Node] = {}
    checks: dict[tuple[int, str | None], Node] = {}  # {(node, side tag): the check behind that output}
    next_id = len(graph.nodes)

    def add_check(checked: Node, side_tag: str | None, declared: TypeInformation | None) -> None:
        nonlocal next_id
        if not needs_check(declared):
            return
        known = checks.get((checked.id, side_tag))
        if known is not None:
            if known.origin.output_type != declared:
                raise PlanError(
                    f"side output '{side_tag}' of {checked.label()} is declared as {known.origin.output_type} and as "
                    f"{declared}; one side output has one type"
                )
            return
        check = _check_node(next_id, checked, side_tag, declared)
        next_id += 1
        checks[checked.id, side_tag] = nodes[check.id] = check

    for node in graph:
        for edge in node.edges:
            if edge.side_tag is not None:
                add_check(graph[edge.upstream], edge.side_tag, edge.side_type)
        nodes[node.id] = replace(node, edges=tuple(_read_check(edge, checks) for edge in node.edges))
        if node.origin.checks_output:
            add_check(node, None, node.origin.output_type)
    return LogicalGraph(nodes)


def needs_check(declared: TypeInformation | None) -> TypeGuard[TypeInformation]:
    """Return True if a declared type restricts the records. PICKLED_BYTE_ARRAY does not: it is any Python object."""
    return declared is not None and not isinstance(declared, PickledBytesTypeInfo)


def _check_node(node_id: int, checked: Node, side_tag: str | None, declared: TypeInformation) -> Node:
    output = checked.name if side_tag is None else f"{checked.name}[{side_tag}]"
    origin = OperatorTransformation(
        name=f"Type-Check {output}",
        kind="type check",
        output_type=declared,
        upstreams=(checked.origin,),
        # Errors should name the operator that produced the record, not the check.
        factory=partial(TypeCheckOperator, declared, output),
    )
    edge = Edge(checked.id, side_tag=side_tag, exchange=Exchange.FORWARD)
    uid = f"{checked.uid}-type-check" if side_tag is None else f"{checked.uid}-type-check-{side_tag}"
    return Node(node_id, origin, (edge,), uid, checked.parallelism)


def _read_check(edge: Edge, checks: dict[tuple[int, str | None], Node]) -> Edge:
    check = checks.get((edge.upstream, edge.side_tag))
    if check is not None:
        edge = replace(edge, upstream=check.id, side_tag=None)
    if edge.key_selector is not None and needs_check(edge.key_type):
        edge = replace(edge, key_selector=CheckedKeySelector(edge.key_selector, edge.key_type))
    return edge
