"""GROUP BY, DISTINCT and grouping sets, over all rows or over windows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from headwater.table.plan import nodes
from headwater.table.plan.calls import cast
from headwater.table.plan.context import new_column
from headwater.table.plan.expressions import AggregateCall, Column, Grouping, Literal, Rex, SortKey, ref
from headwater.table.stream.operators.aggregate import GroupAggregateOperator
from headwater.table.stream.operators.calc import Compute
from headwater.table.stream.physical import ROWTIME, Physical, State, Traits, WindowPart
from headwater.table.stream.state_ids import digest, meaning
from headwater.table.types.logical import BIGINT

if TYPE_CHECKING:
    from headwater.table.stream.planner import StreamPlanner


def aggregate(planner: StreamPlanner, plan: nodes.Aggregate) -> Physical:
    """GROUP BY. Its columns are the groups, then the calls."""
    if plan.sets is not None:
        return grouping_sets(planner, plan, plan.sets)
    input = planner.build(plan.input)
    calls = [(column, call) for column, call in plan.calls if isinstance(call, AggregateCall)]
    made = group(planner, input, plan.groups, calls, plan.ttl_ms)
    if len(calls) == len(plan.calls):
        return made
    # GROUPING without grouping sets: every group is there.
    zero = [(column, Literal(column.type, 0)) for column, call in plan.calls if isinstance(call, Grouping)]
    items = {column.id: rex for column, rex in zero}
    return planner.calc(made, [Compute(tuple((c, items.get(c.id) or ref(c)) for c in plan.columns))])


def group(
    planner: StreamPlanner,
    input: Physical,
    groups: Sequence[tuple[Column, Rex]],
    calls: Sequence[tuple[Column, AggregateCall]],
    hint_ms: int | None = None,
) -> Physical:
    ttl_ms = planner.ttl_ms if hint_ms is None else hint_ms or None
    rexes = [rex for _, rex in groups] + [rex for _, call in calls for rex in _parts(call)]
    needed = [rex for rex in rexes if not isinstance(rex, Literal)]
    before = input.traits
    arranged, columns = planner.columns_of(input, [*(rex for _, rex in groups), *needed])
    by_rex = dict(zip([id(rex) for rex in (*(rex for _, rex in groups), *needed)], columns, strict=True))
    keys = [by_rex[id(rex)] for _, rex in groups]
    bound = [(column, _bound(call, by_rex)) for column, call in calls]
    window = _window(keys, arranged.traits)
    key_meanings = [meaning(rex, before.meanings) for _, rex in groups]
    output = tuple(column for column, _ in (*groups, *calls))
    rows = digest("group", before.rows, *key_meanings)
    made = {
        **{column.id: digest("key", rows, text) for (column, _), text in zip(groups, key_meanings, strict=True)},
        **{column.id: digest("call", rows, meaning(call, before.meanings)) for column, call in calls},
    }
    end = None if window is None else window[1]
    time = "event" if window is None or window[0].time == ROWTIME else "processing"
    origins = {column.id: key.id for (column, _), key in zip(groups, keys, strict=True)}
    projected = arranged.traits.projected(origins, made)
    names = ", ".join(column.name for column, _ in groups)
    kind = "WindowAggregate" if end is not None else "GroupAggregate"
    traits = Traits(
        append_only=end is not None,
        keys=frozenset({frozenset(column.id for column, _ in groups)}),
        times={id_: found for id_, found in projected.times.items() if end is not None},
        windows=projected.windows if end is not None else {},
        culprit="" if end is not None else f"{kind}(groupBy=[{names}]) (a group changes with each row that joins it)",
        meanings=made,
        rows=rows,
        bounded=before.bounded,
    )
    factory = partial(
        GroupAggregateOperator,
        arranged.columns,
        keys,
        bound,
        output,
        ttl_ms=None if end is not None else ttl_ms,
        zone=planner.zone,
        window_end=end,
        time=time,
        zoned=window is not None and window[0].zoned,
        append_only=before.append_only,
    )
    from headwater.table.plan.explain import text

    shown = ", ".join(f"{text(call)} AS {column.name}" for column, call in calls)
    return Physical(
        kind,
        f"groupBy=[{names}]" + (f", select=[{shown}]" if shown else ""),
        output,
        (arranged,),
        factory,
        (tuple(arranged.place(key) for key in keys),),
        traits,
        State(
            "accumulators of each window until it closes" if end is not None else "accumulators of each group",
            None if end is not None else ttl_ms,
            bounded=end is not None or not groups,
        ),
        planner.uid(kind, rows),
        ticks=time == "processing",
    )


def _parts(call: AggregateCall) -> list[Rex]:
    found = [*call.arguments, *(key.expression for key in call.order_by)]
    return found if call.filter is None else [*found, call.filter]


def _bound(call: AggregateCall, columns: dict[int, Column]) -> AggregateCall:
    def column(rex: Rex) -> Rex:
        return rex if isinstance(rex, Literal) else ref(columns[id(rex)])

    return replace(
        call,
        arguments=tuple(column(rex) for rex in call.arguments),
        filter=None if call.filter is None else column(call.filter),
        order_by=tuple(SortKey(column(key.expression), key.descending, key.nulls_first) for key in call.order_by),
    )


def _window(keys: Sequence[Column], traits: Traits) -> tuple[WindowPart, Column] | None:
    """The window that is grouped by, and the column of its end; None if no window is."""
    parts: dict[str, dict[str, Column]] = {}
    found: dict[str, WindowPart] = {}
    for key in keys:
        part = traits.windows.get(key.id)
        if part is not None:
            parts.setdefault(part.window, {})[part.part] = key
            found[part.window] = part
    for window, columns in parts.items():
        if "start" in columns and "end" in columns:
            return found[window], columns["end"]
    return None


def grouping_sets(planner: StreamPlanner, plan: nodes.Aggregate, sets: tuple[tuple[int, ...], ...]) -> Physical:
    """Each set is a GROUP BY of its own, with NULL for the groups that it lacks; the results are united."""
    input = planner.build(plan.input)
    parts = []
    calls = [(column, call) for column, call in plan.calls if isinstance(call, AggregateCall)]
    for number, chosen in enumerate(sets):
        own = [(new_column(column.name, rex.type), rex) for at, (column, rex) in enumerate(plan.groups) if at in chosen]
        by_place = dict(zip([at for at in range(len(plan.groups)) if at in chosen], own, strict=True))
        renamed = [(new_column(column.name, column.type), call) for column, call in calls]
        made = group(planner, input, own, renamed)
        results = {column.id: new for (column, _), (new, _) in zip(calls, renamed, strict=True)}
        items: list[tuple[Column, Rex]] = []
        for place, (column, _) in enumerate(plan.groups):
            rex: Rex = ref(by_place[place][0]) if place in by_place else Literal(column.type.with_nullable(True), None)
            items.append((new_column(column.name, column.type), rex))
        for column, call in plan.calls:
            rex = ref(results[column.id]) if isinstance(call, AggregateCall) else _grouping(call, plan, chosen, column)
            items.append((new_column(column.name, column.type), rex))
        items.append((new_column("$set", BIGINT.not_null()), Literal(BIGINT.not_null(), number)))
        parts.append(planner.calc(made, [Compute(tuple(items))]))
    from headwater.table.stream.planner_tables import union

    columns = (*plan.columns, new_column("$set", BIGINT.not_null()))
    # The number of the set makes rows of different sets differ, also where the groups are NULL.
    united = union(planner, parts, columns)
    keys = frozenset({frozenset([*(column.id for column, _ in plan.groups), columns[-1].id])})
    return replace(united, traits=replace(united.traits, keys=keys))


def _grouping(call: Grouping, plan: nodes.Aggregate, chosen: Sequence[int], column: Column) -> Rex:
    bits = 0
    for argument in call.arguments:
        place = next(at for at, (_, rex) in enumerate(plan.groups) if rex == argument)
        bits = bits * 2 + (place not in chosen)
    return cast(Literal(BIGINT.not_null(), bits), column.type)
