"""Joins: regular ones, of windows, of intervals, with versions of a table, with look-ups."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from headwater.common.errors import SqlError
from headwater.operators.base import Operator
from headwater.table.plan import nodes
from headwater.table.plan.calls import cast
from headwater.table.plan.expressions import Column, FunctionCall, Rex, ref
from headwater.table.stream.operators.calc import Compute
from headwater.table.stream.operators.join import JoinOperator
from headwater.table.stream.physical import Physical, State, Traits
from headwater.table.stream.planner_ranks import _columns, conjunction, conjuncts
from headwater.table.stream.planner_tables import _all
from headwater.table.stream.state_ids import digest, meaning

if TYPE_CHECKING:
    from headwater.table.stream.planner import StreamPlanner


@dataclass(frozen=True)
class Equal:
    """`left = right` of a join's condition, over columns of one side each, of one type."""

    left: Rex
    right: Rex
    null_safe: bool


def split_condition(condition: Rex | None, left: set[int], right: set[int]) -> tuple[list[Equal], list[Rex]]:
    """The equalities by which a join is keyed, and what else must hold."""
    equal: list[Equal] = []
    rest: list[Rex] = []
    for each in [] if condition is None else conjuncts(condition):
        found = _equality(each, left, right)
        if found is not None:
            equal.append(found)
        elif not _is_true(each):
            rest.append(each)
    return equal, rest


def _is_true(rex: Rex) -> bool:
    return getattr(rex, "value", None) is True


def _equality(rex: Rex, left: set[int], right: set[int]) -> Equal | None:
    if not isinstance(rex, FunctionCall) or rex.name not in ("=", "IS NOT DISTINCT FROM"):
        return None
    one, other = (
        cast(each, type_.with_nullable(each.type.nullable))
        for each, type_ in zip(rex.arguments, rex.binding.arg_types, strict=True)
    )
    if not rex.arguments[0].type.same_kind(rex.arguments[1].type) and not one.type.same_kind(other.type):
        return None
    safe = rex.name != "="
    first, second = _columns(one), _columns(other)
    if not first or not second:
        return None
    if first <= left and second <= right:
        return Equal(one, other, safe)
    if first <= right and second <= left:
        return Equal(other, one, safe)
    return None


def join(planner: StreamPlanner, plan: nodes.Join) -> Physical:
    if plan.lateral:
        raise SqlError("a LATERAL query that refers to the left side does not run on streams here; write it as a join")
    if isinstance(plan.right, nodes.Snapshot):
        from headwater.table.stream.planner_snapshots import snapshot_join

        return snapshot_join(planner, plan, plan.right)
    left, right = planner.build(plan.left), planner.build(plan.right)
    equal, rest = split_condition(
        plan.condition, {column.id for column in left.columns}, {column.id for column in right.columns}
    )
    kind = "INNER" if plan.kind == "CROSS" else plan.kind
    from headwater.table.stream.planner_timed_joins import timed_join

    joining = Joining(planner, plan, kind, left, right, equal, rest)
    found = timed_join(joining)
    return found if found is not None else _regular_join(joining)


@dataclass(frozen=True)
class Joining:
    """A join whose inputs are planned and whose condition is split."""

    planner: StreamPlanner
    plan: nodes.Join
    kind: str
    left: Physical
    right: Physical
    equal: Sequence[Equal]
    rest: Sequence[Rex]

    def sides(self) -> Sides:
        left, left_keys = self.planner.columns_of(self.left, [each.left for each in self.equal], keep=True)
        right, right_keys = self.planner.columns_of(self.right, [each.right for each in self.equal], keep=True)
        return Sides(self, left, right, tuple(left_keys), tuple(right_keys))

    def chosen(self, made: Physical) -> Physical:
        """Only the columns of the plan's node: not those that were made for keys."""
        if [column.id for column in made.columns] == [column.id for column in self.plan.columns]:
            return made
        by_id = {column.id: column for column in made.columns}
        items = tuple((column, ref(by_id[column.id])) for column in self.plan.columns)
        return self.planner.calc(made, [Compute(items)])


@dataclass(frozen=True)
class Sides:
    """Both sides of a join, projected so that keys are columns."""

    of: Joining
    left: Physical
    right: Physical
    left_keys: tuple[Column, ...]
    right_keys: tuple[Column, ...]

    @property
    def null_safe(self) -> tuple[bool, ...]:
        return tuple(each.null_safe for each in self.of.equal)

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of the operator: the left side's, then the right's, as nullable as the join makes them."""
        by_id = {column.id: column for column in self.of.plan.columns}
        right = () if self.of.kind in ("SEMI", "ANTI") else self.right.columns
        return tuple(by_id.get(column.id, _nullable(column)) for column in (*self.left.columns, *right))

    def physical(
        self,
        name: str,
        operator: Callable[..., Operator],
        residual: Rex | None,
        traits: Traits,
        state: State,
        *,
        detail: str = "",
        ticks: bool = False,
        **settings: Any,
    ) -> Physical:
        """The node of an operator that takes both sides, their keys, the residual, and `settings` of its own."""
        planner, left, right = self.of.planner, self.left, self.right
        factory = partial(
            operator,
            left.columns,
            right.columns,
            self.of.kind,
            self.left_keys,
            self.right_keys,
            residual=residual,
            columns=self.columns,
            zone=planner.zone,
            **settings,
        )
        places = tuple(
            tuple(side.place(column) for column in keys)
            for side, keys in ((left, self.left_keys), (right, self.right_keys))
        )
        uid = planner.uid(name, traits.rows, *_all(left), *_all(right))
        text = join_text(self, residual) + detail
        return Physical(name, text, self.columns, (left, right), factory, places, traits, state, uid, ticks=ticks)


def _nullable(column: Column) -> Column:
    return replace(column, type=column.type.with_nullable(True))


def _regular_join(joining: Joining) -> Physical:
    sides = joining.sides()
    ttl = joining.planner.ttls(joining.plan)
    residual = conjunction(joining.rest) if joining.rest else None
    made = sides.physical(
        "Join",
        JoinOperator,
        residual,
        join_traits(sides, residual),
        State("the rows of both sides", min((each for each in ttl if each is not None), default=None)),
        null_safe=sides.null_safe,
        ttl_ms=ttl,
    )
    return joining.chosen(made)


def join_text(sides: Sides, residual: Rex | None) -> str:
    from headwater.table.plan.explain import text

    keys = ", ".join(f"{a.name} = {b.name}" for a, b in zip(sides.left_keys, sides.right_keys, strict=True))
    where = f", residual=[{text(residual)}]" if residual is not None else ""
    return f"joinType=[{sides.of.kind}], on=[{keys}]{where}"


def join_traits(sides: Sides, residual: Rex | None, timed: bool = False) -> Traits:
    kind, left, right = sides.of.kind, sides.left.traits, sides.right.traits
    meanings = sided(left.meanings, right.meanings)
    keyed = [
        (meaning(ref(a), meanings), meaning(ref(b), meanings))
        for a, b in zip(sides.left_keys, sides.right_keys, strict=True)
    ]
    rows = digest("join", kind, left.rows, right.rows, keyed, "" if residual is None else meaning(residual, meanings))
    if kind in ("LEFT", "FULL", "RIGHT", "ANTI"):
        why = f"Join(joinType=[{kind}]) (a row without a match is taken back when the match comes)"
        append = timed
    else:
        why = left.culprit or right.culprit
        append = left.append_only and (right.append_only or timed)
        if kind == "SEMI":
            append = left.append_only and right.append_only
    # Where the other side has no match, times and windows are NULL: they are plain columns then.
    whole = [side for side, missing in ((left, "RIGHT"), (right, "LEFT")) if timed and kind not in (missing, "FULL")]
    return Traits(
        append_only=append and left.append_only and (right.append_only or timed),
        culprit="" if append else why,
        keys=_keys(sides),
        times={id_: time for side in whole for id_, time in side.times.items()},
        windows={id_: part for side in whole for id_, part in side.windows.items()},
        meanings=left.meanings if kind in ("SEMI", "ANTI") else meanings,
        rows=rows,
        bounded=left.bounded and right.bounded,
    )


def sided(left: Mapping[int, str], right: Mapping[int, str]) -> dict[int, str]:
    """The meanings of both sides' columns. The side is a part of them: both may come from one table."""
    return {
        **{id_: digest("left", text) for id_, text in left.items()},
        **{id_: digest("right", text) for id_, text in right.items()},
    }


def _keys(sides: Sides) -> frozenset[frozenset[int]]:
    kind, left, right = sides.of.kind, sides.left.traits.keys, sides.right.traits.keys
    if kind in ("SEMI", "ANTI"):
        return left
    left_ids = frozenset(column.id for column in sides.left_keys)
    right_ids = frozenset(column.id for column in sides.right_keys)
    found = {one | other for one in left for other in right}
    if any(key <= right_ids for key in right) and kind in ("INNER", "LEFT"):
        found |= set(left)  # each left row meets at most one right row
    if any(key <= left_ids for key in left) and kind in ("INNER", "RIGHT"):
        found |= set(right)
    return frozenset(found)
