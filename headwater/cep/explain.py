"""A compiled pattern, shown: as text, and as a graph for Graphviz."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.operators.cep.nfa import Kind, Nfa, Option, Position, compile_pattern
from headwater.operators.cep.steps import Contiguity

if TYPE_CHECKING:
    from headwater.cep.pattern import Pattern

_IGNORES = {
    Contiguity.STRICT: "ignores nothing",
    Contiguity.RELAXED: "ignores events that do not fit",
    Contiguity.ANY: "ignores any event",
}


def explain(pattern: Pattern) -> str:
    """Each position on a line, and below it what may happen there, in the order in which it is preferred."""
    nfa = compile_pattern(pattern.steps())
    whole = nfa.pattern
    lines = [
        f"after a match: {whole.skip}" + ("" if whole.within_ms is None else f"; within {whole.within_ms} ms"),
    ]
    for position in nfa.positions:
        lines.append(f"{position.index}: {position.label}" + (" -> match" if position.accepts else ""))
        lines += [f"    {_option(nfa, position, option)}" for option in position.options]
    return "\n".join(lines)


def _option(nfa: Nfa, position: Position, option: Option) -> str:
    said = [_take(nfa, option)]
    if option.kind is Kind.TAKE and position.index:
        said.append(_IGNORES[option.contiguity])
    if option.until is not None:
        said.append(f"until {nfa.conditions[option.until]}")
    said += [f"not if {nfa.conditions[each]} comes before" for each in option.not_before]
    said += [f"not if {nfa.conditions[each]} comes next" for each in option.not_next]
    if option.gap_ms is not None:
        said.append(f"within {option.gap_ms} ms of the event before")
    if option.greedy:
        said.append("greedy")
    return "; ".join(said)


def _take(nfa: Nfa, option: Option) -> str:
    if option.kind is Kind.NEXT_EVENT:
        return "match at the next event"
    if option.kind is Kind.END_OF_TIME:
        return "match when the time is over"
    assert option.step is not None and option.condition is not None
    return f"take '{option.step.name}' if {nfa.conditions[option.condition]} -> {option.target}"


def to_dot(pattern: Pattern) -> str:
    """A digraph: positions are nodes, a full edge takes an event, a dotted loop ignores one."""
    nfa = compile_pattern(pattern.steps())
    lines = ["digraph pattern {", "  rankdir=LR;"]
    waits = False
    for position in nfa.positions:
        shape = "doublecircle" if position.accepts else "circle"
        lines.append(f"  p{position.index} [shape={shape}, label={_quoted(position.label)}];")
        for option in position.options:
            if option.kind is not Kind.TAKE:
                waits = True
                label = "next event" if option.kind is Kind.NEXT_EVENT else "time is over"
                lines.append(f"  p{position.index} -> match [label={_quoted(label)}];")
                continue
            assert option.step is not None and option.condition is not None
            label = f"{option.step.name}: {nfa.conditions[option.condition]}"
            style = ", style=bold" if option.greedy else ""
            lines.append(f"  p{position.index} -> p{option.target} [label={_quoted(label)}{style}];")
            if position.index and option.contiguity is not Contiguity.STRICT:
                ignored = "any" if option.contiguity is Contiguity.ANY else f"not {option.step.name}"
                lines.append(f"  p{position.index} -> p{position.index} [label={_quoted(ignored)}, style=dotted];")
    if waits:
        lines.append("  match [shape=doublecircle];")
    return "\n".join([*lines, "}"])


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
    return f'"{escaped}"'
