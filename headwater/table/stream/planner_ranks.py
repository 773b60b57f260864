"""Functions with OVER, the first rows of each partition (Top-N, deduplication), ORDER BY and LIMIT."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from headwater.common.errors import SqlError
from headwater.table.plan import nodes
from headwater.table.plan.calls import call
from headwater.table.plan.expressions import Column, ColumnRef, FunctionCall, Literal, Rex, SortKey, WindowCall, ref
from headwater.table.stream.operators.calc import Compute, Keep
from headwater.table.stream.operators.over import over_operator, partition_of
from headwater.table.stream.operators.over_time import looks_back
from headwater.table.stream.physical import PROCTIME, ROWTIME, Physical, State, Traits
from headwater.table.stream.planner_tables import _all
from headwater.table.stream.state_ids import digest, keys_meaning, meaning

if TYPE_CHECKING:
    from headwater.table.stream.planner import StreamPlanner

RANKS = ("ROW_NUMBER", "RANK", "DENSE_RANK")


@dataclass(frozen=True)
class Bounds:
    first: int = 1
    last: int | None = None


def conjuncts(rex: Rex) -> list[Rex]:
    """The conditions that AND joins."""
    if isinstance(rex, FunctionCall) and rex.name == "AND":
        return [each for argument in rex.arguments for each in conjuncts(argument)]
    return [rex]


def conjunction(rexes: Sequence[Rex]) -> Rex:
    found = rexes[0]
    for each in rexes[1:]:
        found = call("AND", (found, each))
    return found


def rank(planner: StreamPlanner, plan: nodes.Filter, used: set[int] | None) -> Physical | None:
    """`WHERE rn <= n` over ROW_NUMBER(): the first rows of each partition. None if it is something else.

    `used`: the columns that are read above; without the rank's own, rows do not change because others' ranks do.
    """
    over = plan.input
    assert isinstance(over, nodes.Over)
    if len(over.calls) != 1 or over.calls[0][1].call.name not in RANKS:
        return None
    column, window = over.calls[0]
    bounds, rest = Bounds(), []
    for each in conjuncts(plan.condition):
        tightened = _tightened(bounds, each, column)
        if tightened is None:
            rest.append(each)
        else:
            bounds = tightened
    if bounds.last is None:
        return None
    input = planner.build(over.input)
    wanted = used is None or column.id in used or any(column.id in _columns(each) for each in rest)
    made = _ranked(planner, input, window, bounds, column if wanted else None)
    return planner.calc(made, [Keep(conjunction(rest))]) if rest else made


def _columns(rex: Rex) -> set[int]:
    return {each.column.id for each in rex.walk() if isinstance(each, ColumnRef)}


def _tightened(bounds: Bounds, condition: Rex, column: Column) -> Bounds | None:
    """The bounds with a comparison of the rank with a number; None if the condition is something else."""
    if not isinstance(condition, FunctionCall) or len(condition.arguments) != 2:
        return None
    left, right = (_plain(each) for each in condition.arguments)
    operator = condition.name
    if isinstance(left, Literal) and isinstance(right, ColumnRef):
        left, right = right, left
        operator = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(operator, operator)
    if not (isinstance(left, ColumnRef) and left.column.id == column.id and isinstance(right, Literal)):
        return None
    if not isinstance(right.value, int) or isinstance(right.value, bool):
        return None
    number = right.value
    last = bounds.last
    match operator:
        case "=":
            return Bounds(max(bounds.first, number), number if last is None else min(last, number))
        case "<=":
            return replace(bounds, last=number if last is None else min(last, number))
        case "<":
            return replace(bounds, last=number - 1 if last is None else min(last, number - 1))
        case ">=":
            return replace(bounds, first=max(bounds.first, number))
        case ">":
            return replace(bounds, first=max(bounds.first, number + 1))
    return None


def _plain(rex: Rex) -> Rex:
    """Without the cast that a comparison of BIGINT with INT needs."""
    if isinstance(rex, FunctionCall) and rex.name == "CAST" and isinstance(rex.arguments[0], ColumnRef | Literal):
        return rex.arguments[0]
    return rex


def _ranked(
    planner: StreamPlanner, input: Physical, window: WindowCall, bounds: Bounds, column: Column | None
) -> Physical:
    from headwater.table.stream.operators.rank import RankOperator

    kind = window.call.name
    outer = input.columns
    rexes = [*window.partition_by, *(key.expression for key in window.order_by)]
    arranged, columns = planner.columns_of(input, rexes, keep=True)
    partition = columns[: len(window.partition_by)]
    order = [
        replace(key, expression=ref(each)) for key, each in zip(window.order_by, columns[len(partition) :], strict=True)
    ]
    before = arranged.traits
    end = next((each for each in partition if (part := before.windows.get(each.id)) and part.part == "end"), None)
    starts = any((part := before.windows.get(each.id)) and part.part == "start" for each in partition)
    window_end = end if starts and before.append_only else None
    closing = None if window_end is None else before.windows[window_end.id]
    only = kind == "ROW_NUMBER" and bounds.first == bounds.last == 1
    first_stays = (
        only
        and before.append_only
        and len(order) == 1
        and not order[0].descending
        and before.times.get(_ref(order[0]).id) == PROCTIME
    )
    name = "WindowRank" if window_end is not None else "Deduplicate" if only else "Rank"
    text = ", ".join(each.name for each in partition)
    keys: set[frozenset[int]] = set(before.keys) if kind == "ROW_NUMBER" else set()
    if only:
        keys.add(frozenset(each.id for each in partition))
    elif column is not None and kind == "ROW_NUMBER":
        keys.add(frozenset([*(each.id for each in partition), column.id]))
    output = (*arranged.columns, *(() if column is None else (column,)))
    order_text = keys_meaning(tuple(order), before.meanings)
    rows = digest("rank", before.rows, kind, bounds, [before.meanings.get(each.id) for each in partition], order_text)
    append = window_end is not None or first_stays
    traits = replace(
        before,
        append_only=append,
        culprit="" if append else f"{name}(partitionBy=[{text}]) (a better row takes another one's place)",
        keys=frozenset(keys),
        times=before.times if append else {k: v for k, v in before.times.items() if v == PROCTIME},
        meanings={**before.meanings, **({} if column is None else {column.id: digest("rank", rows)})},
        rows=rows,
    )
    factory = partial(
        RankOperator,
        arranged.columns,
        partition,
        order,
        bounds.first,
        bounds.last,
        column,
        kind,
        output,
        ttl_ms=planner.ttl_ms,
        zone=planner.zone,
        window_end=window_end,
        time="processing" if closing is not None and closing.time == PROCTIME else "event",
        zoned=closing is not None and closing.zoned,
        append_only=before.append_only,
    )
    made = Physical(
        name,
        f"partitionBy=[{text}], rank=[{bounds.first}..{bounds.last}], {kind}",
        output,
        (arranged,),
        factory,
        (tuple(arranged.place(each) for each in partition),),
        traits,
        State(
            "rows of each partition",
            None if window_end is not None else planner.ttl_ms,
            bounded=window_end is not None,
        ),
        planner.uid(name, rows, *_all(arranged), column is not None),
    )
    wanted = (*outer, *(() if column is None else (column,)))
    if len(wanted) == len(output):
        return made
    return planner.calc(made, [Compute(tuple((each, ref(each)) for each in wanted))])


def _ref(key: SortKey) -> Column:
    assert isinstance(key.expression, ColumnRef)
    return key.expression.column


def over(planner: StreamPlanner, plan: nodes.Over) -> Physical:
    """Functions over windows of rows: by event time, by processing time, or by anything, computed anew.

    One operator has one key: calls with another PARTITION BY are computed behind it.
    """
    made = planner.build(plan.input)
    left = list(plan.calls)
    while left:
        first = {*left[0][1].partition_by}
        same = [item for item in left if {*item[1].partition_by} == first]
        left = [item for item in left if item not in same]
        made = over_of(planner, made, same)
    if [column.id for column in made.columns] == [column.id for column in plan.columns]:
        return made
    return planner.calc(made, [Compute(tuple((column, ref(column)) for column in plan.columns))])


def over_of(planner: StreamPlanner, input: Physical, calls: Sequence[tuple[Column, WindowCall]]) -> Physical:
    rexes = [rex for _, window in calls for rex in window.children() if not isinstance(rex, Literal)]
    arranged, columns = planner.columns_of(input, rexes, keep=True)
    by_rex = dict(zip([id(rex) for rex in rexes], columns, strict=True))
    before = arranged.traits
    bound = []
    for column, window in calls:
        children = tuple(rex if isinstance(rex, Literal) else ref(by_rex[id(rex)]) for rex in window.children())
        changed = window.with_children(children)
        assert isinstance(changed, WindowCall)
        bound.append((column, changed))
    partition = partition_of(bound)
    order = bound[0][1].order_by
    time = _over_time([window for _, window in bound], before)
    if time is not None and not before.append_only and before.times[time.id] == ROWTIME:
        time = None  # rows that are taken back: compute anew
    output = (*arranged.columns, *(column for column, _ in calls))
    texts = [meaning(window, before.meanings) for _, window in bound]
    rows = digest("over", before.rows, [before.meanings.get(each.id) for each in partition])
    append = time is not None and before.append_only
    traits = replace(
        before,
        append_only=append,
        culprit=""
        if append
        else "OverAggregate (a row that comes before others changes their windows; order by a time attribute instead)",
        times=before.times if append else {},
        meanings={
            **before.meanings,
            **{column.id: digest("over", before.rows, text) for (column, _), text in zip(calls, texts, strict=True)},
        },
        rows=rows,
    )
    processing = time is not None and before.times[time.id] == PROCTIME
    factory = partial(
        over_operator,
        arranged.columns,
        bound,
        output,
        time=time if append else None,
        processing_time=processing,
        ttl_ms=planner.ttl_ms,
        zone=planner.zone,
    )
    names = ", ".join(each.name for each in partition)
    made = Physical(
        "OverAggregate",
        f"partitionBy=[{names}], orderBy=[{', '.join(_name(key) for key in order)}]",
        output,
        (arranged,),
        factory,
        (tuple(arranged.place(each) for each in partition),),
        traits,
        State("rows in the windows of each partition", planner.ttl_ms),
        planner.uid("OverAggregate", rows, *_all(arranged), *texts),
        ticks=processing,
    )
    wanted = (*input.columns, *(column for column, _ in calls))
    if len(wanted) == len(output):
        return made
    return planner.calc(made, [Compute(tuple((each, ref(each)) for each in wanted))])


def _name(key: SortKey) -> str:
    return key.expression.column.name if isinstance(key.expression, ColumnRef) else "constant"


def _over_time(calls: Sequence[WindowCall], traits: Traits) -> Column | None:
    """The time attribute that all calls are ordered by, ascending, looking back only; None if there is none."""
    order = calls[0].order_by
    if len(order) != 1 or not isinstance(order[0].expression, ColumnRef):
        return None
    column = order[0].expression.column
    if column.id not in traits.times or not all(looks_back(each, column) for each in calls):
        return None
    return column


def sort(planner: StreamPlanner, plan: nodes.Sort) -> Physical:
    """ORDER BY with LIMIT: the first rows of all. Without: by event time only."""
    input = planner.build(plan.input)
    arranged, columns = planner.columns_of(input, [key.expression for key in plan.keys], keep=True)
    order = [replace(key, expression=ref(column)) for key, column in zip(plan.keys, columns, strict=True)]
    before = arranged.traits
    order_text = keys_meaning(tuple(order), before.meanings)
    if plan.limit is None and plan.offset is None:
        if not order or order[0].descending or before.times.get(_ref(order[0]).id) != ROWTIME or not before.append_only:
            raise SqlError(
                "ORDER BY without LIMIT sorts a table that never ends. Add LIMIT n for the first rows, or order by the"
                " time attribute (ascending, first) of rows that are not updated"
            )
        from headwater.table.stream.operators.sort import TemporalSortOperator

        temporal = partial(
            TemporalSortOperator, arranged.columns, _ref(order[0]), order, arranged.columns, zone=planner.zone
        )
        rows = digest("sort", before.rows, order_text)
        made = Physical(
            "TemporalSort",
            f"orderBy=[{', '.join(_ref(key).name for key in order)}]",
            arranged.columns,
            (arranged,),
            temporal,
            ((),),
            before,
            State("rows until the watermark passes them", bounded=True),
            planner.uid("TemporalSort", rows, *_all(arranged)),
        )
    else:
        from headwater.table.stream.operators.sort import SortLimitOperator

        rows = digest("limit", before.rows, order_text, plan.offset, plan.limit)
        append = not order and not plan.offset and before.append_only
        factory = partial(
            SortLimitOperator,
            arranged.columns,
            order,
            plan.offset or 0,
            plan.limit,
            arranged.columns,
            ttl_ms=planner.ttl_ms,
            zone=planner.zone,
            append_only=before.append_only,
        )
        made = Physical(
            "SortLimit",
            f"orderBy=[{', '.join(_name(key) for key in order)}], offset=[{plan.offset or 0}], fetch=[{plan.limit}]",
            arranged.columns,
            (arranged,),
            factory,
            ((),),
            replace(
                before,
                append_only=append,
                culprit="" if append else "SortLimit (a better row pushes another one out)",
                times={} if not append else before.times,
                rows=rows,
            ),
            State("all rows, to know who follows", planner.ttl_ms),
            planner.uid("SortLimit", rows, *_all(arranged)),
        )
    if len(made.columns) == len(input.columns):
        return made
    return planner.calc(made, [Compute(tuple((each, ref(each)) for each in input.columns))])
