"""Columns that nobody reads leave the plan early: joins and ranks keep whole rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from headwater.table.plan import nodes
from headwater.table.plan.expressions import Column, ColumnRef, Rex, SubqueryRex, WindowCall, ref
from headwater.table.plan.nodes import Plan

ScanRule = Callable[[nodes.Scan, set[int]], Plan]
"""A table, and the ids of the columns that are needed of it."""


def prune_columns(plan: Plan) -> Plan:
    """The same plan without columns that are computed or kept for nothing. Its own columns stay.

    One column is left everywhere: Arrow forgets how many rows there are if they have none.
    """
    return _pruned(plan, lambda scan, needed: scan)


def columns_read(plans: Sequence[Plan]) -> dict[str, frozenset[str]]:
    """Of the tables that these plans read, after all other rules: the columns that any of them needs, by table.

    A table is left out if all its columns may be needed: by a subquery, as versions, because rows have a primary key.
    """
    needed: dict[str, set[str]] = {}
    seen: set[int] = set()

    def note(scan: nodes.Scan, ids: set[int]) -> Plan:
        seen.add(id(scan))
        names = needed.setdefault(str(scan.identifier), set())
        names |= {column.name for column in scan.columns if column.id in ids} or {scan.columns[0].name}
        return scan

    def whole(plan: Plan) -> None:
        if isinstance(plan, nodes.Scan) and (id(plan) not in seen or not _can_be_narrow(plan)):
            needed.pop(str(plan.identifier), None)
        for rex in plan.rexes():
            for each in rex.walk():
                if isinstance(each, SubqueryRex):
                    whole(each.plan)
        for input in plan.inputs():
            whole(input)

    for plan in plans:
        _pruned(plan, note)
    for plan in plans:
        whole(plan)
    return {table: frozenset(names) for table, names in needed.items()}


def read_only(plan: Plan, columns: Mapping[str, frozenset[str]]) -> Plan:
    """The plan, with tables that have only these columns."""

    def narrow(scan: nodes.Scan, ids: set[int]) -> Plan:
        names = columns.get(str(scan.identifier))
        return scan if names is None else replace(scan, given=tuple(c for c in scan.given if c.name in names))

    return _pruned(plan, narrow)


def _can_be_narrow(scan: nodes.Scan) -> bool:
    return scan.table.rows is None and not scan.table.schema.primary_key


def _pruned(plan: Plan, scan: ScanRule) -> Plan:
    return _Pruner(scan).pruned(plan, {column.id for column in plan.columns})


def _ids(*rexes: Rex) -> set[int]:
    found: set[int] = set()
    for rex in rexes:
        for each in rex.walk():
            if isinstance(each, ColumnRef):
                found.add(each.column.id)
            if isinstance(each, SubqueryRex):
                found |= _all_ids(each.plan)  # a correlated subquery may read any column
    return found


def _all_ids(plan: Plan) -> set[int]:
    found = _ids(*plan.rexes())
    for each in plan.inputs():
        found |= _all_ids(each)
    return found


class _Pruner:
    """`scan`: what becomes of a table of which only some columns are needed."""

    def __init__(self, scan: ScanRule) -> None:
        self._scan = scan

    def pruned(self, plan: Plan, needed: set[int]) -> Plan:
        match plan:
            case nodes.Scan():
                return self._scan(plan, needed)
            case nodes.Project():
                items = tuple(item for item in plan.items if item[0].id in needed) or plan.items[:1]
                below = _ids(*(rex for _, rex in items))
                return replace(plan, input=self.pruned(plan.input, below), items=items)
            case nodes.Filter():
                return replace(plan, input=self.pruned(plan.input, needed | _ids(plan.condition)))
            case nodes.Watermark():
                return replace(plan, input=self.pruned(plan.input, needed | {plan.time.id} | _ids(plan.expression)))
            case nodes.Aggregate():
                calls = tuple(item for item in plan.calls if item[0].id in needed)
                below = _ids(*(rex for _, rex in (*plan.groups, *calls)))
                for _, call in calls:
                    for key in getattr(call, "order_by", ()):
                        below |= _ids(key.expression)
                return replace(plan, input=self._narrowed(plan.input, below), calls=calls)
            case nodes.Over():
                windows = tuple(item for item in plan.calls if item[0].id in needed)
                if not windows:
                    return self.pruned(plan.input, needed)
                below = needed | _window_ids([call for _, call in windows])
                return replace(plan, input=self._narrowed(plan.input, below), calls=windows)
            case nodes.WindowTable():
                below = needed | {plan.time.id} | {column.id for column in plan.partition_by}
                return replace(plan, input=self.pruned(plan.input, below))
            case nodes.Unnest():
                return replace(plan, input=self.pruned(plan.input, needed | _ids(plan.collection)))
            case nodes.Sort():
                return replace(
                    plan, input=self.pruned(plan.input, needed | _ids(*(key.expression for key in plan.keys)))
                )
            case nodes.Join() if not plan.lateral:
                below = needed | (set() if plan.condition is None else _ids(plan.condition))
                if isinstance(plan.right, nodes.Snapshot):
                    below |= _ids(plan.right.period)
                    return replace(plan, left=self._narrowed(plan.left, below), nullable=_kept(plan, plan.left, below))
                left, right = self._narrowed(plan.left, below), self._narrowed(plan.right, below)
                there = {column.id for column in (*left.columns, *right.columns)}
                return replace(plan, left=left, right=right, nullable=tuple(c for c in plan.columns if c.id in there))
        inputs = tuple(self.pruned(each, {column.id for column in each.columns}) for each in plan.inputs())
        return plan.with_inputs(inputs) if inputs else plan

    def _narrowed(self, plan: Plan, needed: set[int]) -> Plan:
        """The pruned plan, and a projection if it still has columns that nobody reads."""
        found = self.pruned(plan, needed)
        columns = [column for column in found.columns if column.id in needed] or found.columns[:1]
        if len(columns) == len(found.columns):
            return found
        return nodes.Project(found, tuple((column, ref(column)) for column in columns))


def _kept(plan: nodes.Join, left: Plan, below: set[int]) -> tuple[Column, ...]:
    gone = {column.id for column in left.columns} - below
    return tuple(column for column in plan.columns if column.id not in gone)


def _window_ids(calls: list[WindowCall]) -> set[int]:
    return _ids(*(child for call in calls for child in call.children()))
