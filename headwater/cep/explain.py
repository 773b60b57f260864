"""A compiled pattern, shown: as text, and as a graph for Graphviz."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from headwater.operators.cep.conditions import Always
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
    """A digraph: positions are nodes, with what ends a partial match there; a dotted loop ignores an event."""
    nfa = compile_pattern(pattern.steps())
    whole = nfa.pattern
    said = f"after a match: {whole.skip}" + ("" if whole.within_ms is None else f", within {whole.within_ms} ms")
    lines = [
        "digraph pattern {",
        f'  graph [rankdir=LR, fontname=Helvetica, fontsize=11, fontcolor="#57606a", label={_quoted(said)}];',
        '  node [shape=box, style="rounded,filled", color="#0969da", fillcolor="#ddf4ff", fontname=Helvetica];',
        '  edge [color="#57606a", fontname=Helvetica, fontsize=11];',
        '  p0 [shape=circle, width=0.2, fixedsize=true, fillcolor="#0969da", label=""];',
    ]
    for position in nfa.positions:
        here = f"p{position.index}"
        if position.index:
            colours = _MATCH if position.accepts else ""
            lines.append(f"  {here} [label={_node_label(nfa, position)}{colours}];")
        lines += [f"  {here} -> {_edge(nfa, position, option)};" for option in position.options]
        ignored = dict.fromkeys(_ignored(nfa, option) for option in position.options if position.index)
        if any(ignored):
            said = _quoted(*filter(None, ignored))
            lines.append(f"  {here} -> {here} [label={said}, style=dotted, tailport=s, headport=s];")
    if any(option.kind is not Kind.TAKE for position in nfa.positions for option in position.options):
        lines.append(f"  match [label=match{_MATCH}];")
    return "\n".join([*lines, "}"])


_MATCH = ', peripheries=2, color="#1a7f37", fillcolor="#dafbe1"'


def _node_label(nfa: Nfa, position: Position) -> str:
    """The position; and in red, what ends the options that lead on from it, or those that are named."""
    ends: dict[str, list[str]] = {}
    for option in position.options:
        name = "the end" if option.step is None else option.step.name
        stops = [str(nfa.conditions[each]) for each in option.not_before]
        stops += [f"{nfa.conditions[each]} next" for each in option.not_next]
        stops += [f"until {nfa.conditions[option.until]}"] if option.until is not None else []
        for stop in stops:
            ends.setdefault(stop, []).append(name)
    lines = [escape(position.label)]
    for stop, names in ends.items():
        only = "" if len(names) == len(position.options) else f" (for {', '.join(names)})"
        lines.append(f'<FONT POINT-SIZE="11" COLOR="#cf222e">✗ {escape(stop + only)}</FONT>')
    return f"<{'<BR/>'.join(lines)}>"


def _edge(nfa: Nfa, position: Position, option: Option) -> str:
    """Where an option leads, and what its arrow says."""
    if option.kind is not Kind.TAKE:
        said = "next event" if option.kind is Kind.NEXT_EVENT else "time is over"
        return f"match [label={_quoted(said)}]"
    assert option.step is not None and option.condition is not None
    said = f"{option.step.name}: {nfa.conditions[option.condition]}"
    more = [f"within {option.gap_ms} ms"] if option.gap_ms is not None else []
    more += ["greedy"] if option.greedy else []
    style = ", penwidth=2" if option.greedy else ""
    if option.target == position.index:  # apart from what is ignored
        style += ", tailport=n, headport=n"
    return f"p{option.target} [label={_quoted(said, *more)}{style}]"


def _ignored(nfa: Nfa, option: Option) -> str:
    if option.kind is not Kind.TAKE or option.contiguity is Contiguity.STRICT:
        return ""
    assert option.condition is not None
    if option.contiguity is not Contiguity.ANY and isinstance(nfa.conditions[option.condition], Always):
        return ""
    return "any event" if option.contiguity is Contiguity.ANY else f"not {nfa.conditions[option.condition]}"


def _quoted(*lines: str) -> str:
    escaped = [line.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ") for line in lines]
    return '"' + "\\n".join(escaped) + '"'
