"""EXPLAIN on streams: the optimised plan, the operators, what they keep and for how long."""

from __future__ import annotations

from collections.abc import Sequence

from headwater.table.plan import nodes
from headwater.table.plan.explain import explain
from headwater.table.plan.nodes import Plan
from headwater.table.stream.connectors.contract import ChangelogMode
from headwater.table.stream.physical import Physical
from headwater.table.stream.rules import RULES


def optimized(plan: Plan) -> Plan:
    """The plan after all rules."""
    if isinstance(plan, nodes.Sink):
        return plan.with_inputs((optimized(plan.input),))
    for rule in RULES:
        plan = rule(plan)
    return plan


def explain_stream(plan: Plan, physical: Physical, details: Sequence[str]) -> str:
    parts = [
        f"== Typed Plan ==\n{explain(plan)}",
        f"== Optimized Plan ==\n{explain(optimized(plan))}",
        "== Physical Plan ==\n" + "".join(_lines(physical, 0, "CHANGELOG_MODE" in details, set())),
        "== State ==\n" + _states(physical),
    ]
    return "\n".join(parts)


def _lines(node: Physical, depth: int, modes: bool, seen: set[int]) -> list[str]:
    mode = f", changelogMode=[{changelog_mode(node).value}]" if modes and node.kind != "Source" else ""
    again = " (shown above)" if id(node) in seen and node.inputs else ""
    detail = f"({node.detail}{mode})" if node.detail or mode else ""
    exchange = ""
    if node.keys is not None:
        names = [
            ", ".join(each.columns[place].name for place in places) or "all in one"
            for each, places in zip(node.inputs, node.keys, strict=True)
        ]
        exchange = f" <- by [{'] and ['.join(names)}]"
    indent = "   " * max(depth - 1, 0) + ("+- " if depth else "")
    lines = [f"{indent}{node.kind}{detail}{exchange}{again}\n"]
    if again:
        return lines
    seen.add(id(node))
    for each in node.inputs:
        lines += _lines(each, depth + 1, modes, seen)
    return lines


def changelog_mode(node: Physical) -> ChangelogMode:
    """What changes leave a node. Between operators all are told in full."""
    if node.kind == "Sink" and node.sink is not None and not node.traits.append_only:
        return node.sink.mode
    return ChangelogMode.APPEND if node.traits.append_only else ChangelogMode.ALL


def _states(physical: Physical) -> str:
    lines = []
    warnings = []
    seen: set[int] = set()
    for node in physical.walk():
        if node.state is None or id(node) in seen:
            continue
        seen.add(id(node))
        state = node.state
        kept = "until time closes it" if state.bounded else "for ever" if state.ttl_ms is None else f"{state.ttl_ms} ms"
        lines.append(f"{node.kind}({node.detail}): {state.what}; kept {kept}; uid {node.uid}\n")
        if not state.bounded and state.ttl_ms is None and not node.traits.bounded:
            warnings.append(node.kind)
    if warnings:
        lines.append(
            f"WARNING: the state of {', '.join(dict.fromkeys(warnings))} grows without end, because the input does. Set"
            " 'table.exec.state.ttl', give a STATE_TTL hint, or close the result by time: windows, intervals\n"
        )
    return "".join(lines) or "none\n"
