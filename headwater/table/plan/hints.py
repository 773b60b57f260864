"""Hints: OPTIONS of tables; STATE_TTL and LOOKUP of joins. What Flink would leave out with a warning is an error."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import replace

from headwater.common.config.values import read_duration_ms
from headwater.table.parser.ast.queries import Hint
from headwater.table.plan.context import BindContext
from headwater.table.plan.nodes import Filter, Join, LookupRetry, Plan, Project, Snapshot
from headwater.table.plan.scope import Range

STATE_TTL = "STATE_TTL"
LOOKUP = "LOOKUP"
JOIN_STRATEGIES = ("BROADCAST", "SHUFFLE_HASH", "SHUFFLE_MERGE", "NEST_LOOP", "MULTI_JOIN")
"""Flink's wishes for the way of a join. They change no result, and are left to the engine."""

_RETRY = ("retry-predicate", "retry-strategy", "fixed-delay", "max-attempts")
_LOOKUP_OPTIONS = ("table", "async", "output-mode", "capacity", *_RETRY)


def table_options(hints: Sequence[Hint], context: BindContext) -> dict[str, str]:
    """The options of the hint behind a table."""
    found: dict[str, str] = {}
    for hint in hints:
        if hint.name != "OPTIONS":
            raise context.error(
                f"there is no hint '{hint.name}' for a table{_nearest(hint.name, ('OPTIONS',))}; hints of joins and"
                " state stand behind SELECT",
                hint.span,
            )
        found.update(_pairs(hint, context))
    return found


def check_hints(hints: Sequence[Hint], ranges: Sequence[Range], context: BindContext) -> None:
    """Refuse hints of a SELECT that are unknown, and tables that are not in FROM."""
    known = (STATE_TTL, LOOKUP, *JOIN_STRATEGIES)
    for hint in hints:
        if hint.name == "OPTIONS":
            raise context.error("the hint OPTIONS stands behind a table's name", hint.span)
        if hint.name not in known:
            cure = _nearest(hint.name, known) or f"; there is {', '.join(('OPTIONS', *known))}"
            raise context.error(f"there is no hint '{hint.name}'{cure}", hint.span)
        if hint.name == LOOKUP:
            continue
        for name, _ in hint.arguments:
            _in_from(hint, name, ranges, context)


def state_ttls(hints: Sequence[Hint], context: BindContext) -> dict[str, int]:
    """{name of a relation: milliseconds}, as the hints of a SELECT say."""
    found: dict[str, int] = {}
    for hint in hints:
        if hint.name != STATE_TTL:
            continue
        for name, value in hint.arguments:
            try:
                found[name] = read_duration_ms(value or "")
            except ValueError as error:
                raise context.error(f"STATE_TTL: '{value}' is not {error}", hint.span) from None
    return found


def with_lookups(plan: Plan, hints: Sequence[Hint], ranges: Sequence[Range], context: BindContext) -> Plan:
    """The joins of FROM, told how often to ask for a key that has no rows yet."""
    for hint in hints:
        if hint.name != LOOKUP:
            continue
        options = _lookup_options(hint, context)
        name = options["table"]
        columns = {column.id for column in _in_from(hint, name, ranges, context).columns}
        changed = _with_retry(plan, columns, _retry(hint, options, context))
        if changed is plan:
            raise context.error(f"LOOKUP: '{name}' is not joined FOR SYSTEM_TIME AS OF", hint.span)
        plan = changed
    return plan


def _lookup_options(hint: Hint, context: BindContext) -> dict[str, str]:
    options = _pairs(hint, context)
    for key in options:
        if key == "timeout":
            raise context.error("LOOKUP: 'timeout' is not there; the connector has its own", hint.span)
        if key not in _LOOKUP_OPTIONS:
            cure = _nearest(key, _LOOKUP_OPTIONS) or f"; there is {', '.join(_LOOKUP_OPTIONS)}"
            raise context.error(f"LOOKUP has no option '{key}'{cure}", hint.span)
    if "table" not in options:
        raise context.error("LOOKUP needs the option 'table': a name in FROM", hint.span)
    for key, values in (("async", ("true", "false")), ("output-mode", ("ordered", "allow_unordered"))):
        if options.get(key, values[0]).lower() not in values:
            raise context.error(f"LOOKUP: '{key}' = '{options[key]}' is neither {' nor '.join(values)}", hint.span)
    _count(hint, options, "capacity", context)
    return options


def _retry(hint: Hint, options: dict[str, str], context: BindContext) -> LookupRetry | None:
    given = [key for key in _RETRY if key in options]
    if not given:
        return None
    if missing := [key for key in _RETRY if key not in options]:
        raise context.error(f"LOOKUP: '{given[0]}' needs '{missing[0]}', too", hint.span)
    for key, only in (("retry-predicate", "lookup_miss"), ("retry-strategy", "fixed_delay")):
        if options[key].lower() != only:
            raise context.error(f"LOOKUP: '{key}' = '{options[key]}': there is only '{only}'", hint.span)
    try:
        delay_ms = read_duration_ms(options["fixed-delay"])
    except ValueError as error:
        raise context.error(f"LOOKUP: 'fixed-delay' = '{options['fixed-delay']}' is not {error}", hint.span) from None
    return LookupRetry(delay_ms, _count(hint, options, "max-attempts", context))


def _count(hint: Hint, options: dict[str, str], key: str, context: BindContext) -> int:
    text = options.get(key, "1")
    if not text.isdecimal() or int(text) < 1:
        raise context.error(f"LOOKUP: '{key}' = '{text}' is no whole number from 1 on", hint.span)
    return int(text)


def _with_retry(plan: Plan, columns: set[int], retry: LookupRetry | None) -> Plan:
    """`plan` itself if it has no snapshot of these columns."""
    if isinstance(plan, Filter | Project):
        input = _with_retry(plan.input, columns, retry)
        return plan if input is plan.input else plan.with_inputs((input,))
    if not isinstance(plan, Join):
        return plan
    if isinstance(plan.right, Snapshot) and columns <= {column.id for column in plan.right.columns}:
        return replace(plan, right=replace(plan.right, retry=retry, asked=True))
    left = _with_retry(plan.left, columns, retry)
    return plan if left is plan.left else replace(plan, left=left)


def _pairs(hint: Hint, context: BindContext) -> dict[str, str]:
    found = {}
    for key, value in hint.arguments:
        if value is None:
            raise context.error(f"{hint.name}: '{key}' has no value; write '{key}' = '…'", hint.span)
        found[key] = value
    return found


def _in_from(hint: Hint, name: str, ranges: Sequence[Range], context: BindContext) -> Range:
    for each in ranges:
        if each.is_called(tuple(name.split("."))):
            return each
    names = [each.name[-1] for each in ranges if each.name]
    known = f"there is {', '.join(names)}" if names else "there is no table with a name"
    raise context.error(f"{hint.name}: there is no '{name}' in FROM ({known}){_nearest(name, names)}", hint.span)


def _nearest(name: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, known, 1)
    return f"; did you mean '{near[0]}'?" if near else ""


def with_ttls(plan: Plan, ttls: dict[str, int], ranges: Sequence[Range]) -> Plan:
    """The joins of FROM, told how long to keep each relation."""
    if not ttls:
        return plan
    if isinstance(plan, Filter | Project):
        return plan.with_inputs((with_ttls(plan.input, ttls, ranges),))
    if not isinstance(plan, Join):
        return plan
    sides = (plan.left, plan.right)
    times: list[int | None] = [None, None]
    for name, ttl in ttls.items():
        for each in ranges:
            if each.is_called(tuple(name.split("."))):
                ids = {column.id for column in each.columns}
                for place, side in enumerate(sides):
                    if not isinstance(side, Join) and ids <= {column.id for column in side.columns}:
                        times[place] = ttl
    left, right = (with_ttls(side, ttls, ranges) for side in sides)
    return replace(
        plan, left=left, right=right, ttl_ms=(times[0], times[1]) if any(t is not None for t in times) else None
    )
