"""What expressions mean: precedence, words that are no operators, and every tree that can be printed."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.table.parser.ast import expressions as ex
from headwater.table.parser.ast import queries as qu
from headwater.table.parser.ast.base import DataType, Expression, Query
from headwater.table.parser.parse import parse_expression, parse_query, parse_type
from headwater.table.parser.printing.names import data_type
from headwater.table.parser.printing.queries import print_expression, print_query


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("a OR b AND c", "a OR (b AND c)"),
        ("NOT a = b", "NOT (a = b)"),
        ("NOT a AND b", "(NOT a) AND b"),
        ("a + b * c - d", "(a + (b * c)) - d"),
        ("a = b + 1 OR c", "(a = (b + 1)) OR c"),
        ("a BETWEEN 1 AND 2 AND c", "(a BETWEEN 1 AND 2) AND c"),
        ("a LIKE 'x' || 'y' AND b", "(a LIKE ('x' || 'y')) AND b"),
        ("- a * b", "(- a) * b"),
        ("a IS NULL = b", "(a IS NULL) = b"),
        ("- 1", "-1"),
        ("a != b", "a <> b"),
        ("EXTRACT(DAY FROM d)", "extract(day from d)".replace("extract", "EXTRACT")),
        ("SUBSTRING(a FROM 1 FOR 2)", "SUBSTRING(a, 1, 2)"),
        ("POSITION('a' IN b)", "POSITION('a', b)"),
        ("TRIM(a)", "TRIM(BOTH ' ' FROM a)"),
    ],
)
def test_precedence_and_forms(text: str, same: str) -> None:
    assert parse_expression(text) == parse_expression(same)


def test_spans_cover_the_text_of_a_node() -> None:
    text = "SELECT a,\n  COALESCE(b, 1) + c FROM t"
    query = parse_query(text)
    assert isinstance(query, qu.Select)
    span = query.items[1].expression.span
    assert text[span.start : span.end] == "COALESCE(b, 1) + c"


NAMES = st.sampled_from(["a", "b", "select", "Ünï", "a b", "x`y", "FROM", "0", "date"])
LEAVES: st.SearchStrategy[Expression] = st.one_of(
    st.builds(lambda parts: ex.Name(tuple(parts)), st.lists(NAMES, min_size=1, max_size=3)),
    st.builds(lambda number: ex.Number(str(number)), st.integers(-1000, 1000)),
    st.builds(lambda number: ex.Number(f"{number}.25"), st.integers(0, 1000)),
    st.builds(ex.Text, st.text(max_size=5)),
    st.builds(ex.Boolean, st.booleans()),
    st.just(ex.Null()),
    st.just(ex.Temporal("DATE", "2020-01-01")),
    st.builds(lambda negative: ex.Interval("1:2", "HOUR", "MINUTE", negative=negative), st.booleans()),
    st.just(ex.Call(("CURRENT_DATE",), niladic=True)),
)
TYPES = st.recursive(
    st.sampled_from([DataType("INT"), DataType("DECIMAL", (10, 2)), DataType("STRING", nullable=False)]),
    lambda inner: st.one_of(
        st.builds(lambda of: DataType("ARRAY", arguments=(of,)), inner),
        st.builds(lambda key, value: DataType("MAP", arguments=(key, value), nullable=False), inner, inner),
        st.builds(lambda name, of: DataType("ROW", (), (of,), (name,), ("it's",)), NAMES, inner),
    ),
    max_leaves=4,
)


def _larger(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    some = st.lists(inner, min_size=1, max_size=3).map(tuple)
    signs = st.sampled_from(["+", "-", "*", "/", "%", "||", "=", "<>", "<", ">=", "AND", "OR"])
    spec = st.builds(
        ex.WindowSpec,
        st.none() | NAMES,
        some,
        st.builds(lambda item, down: (ex.SortItem(item, down, down),), inner, st.booleans()),
        st.none() | st.just(ex.Frame("ROWS", ex.FrameBound("PRECEDING", ex.Number("1")), ex.FrameBound("CURRENT ROW"))),
    )
    return st.one_of(
        st.builds(ex.Operation, signs, inner, inner),
        st.builds(lambda operand: ex.Unary("NOT", operand), inner),
        st.builds(ex.Between, inner, inner, inner, st.booleans(), st.booleans()),
        st.builds(ex.Like, st.sampled_from(["LIKE", "SIMILAR TO"]), inner, inner, st.none() | inner, st.booleans()),
        st.builds(ex.Is, inner, st.sampled_from(["NULL", "TRUE", "UNKNOWN", "JSON"]), st.booleans()),
        st.builds(ex.IsDistinct, inner, inner, st.booleans()),
        # One query in a list is not told from the query itself: IN ((SELECT 1)).
        st.builds(ex.InList, inner, some.filter(lambda items: not _is_query(items)), st.booleans()),
        st.builds(lambda when, then, other: ex.Case(None, (ex.When(when, then),), other), inner, inner, inner),
        st.builds(ex.Cast, inner, TYPES, st.booleans()),
        st.builds(ex.Item, inner, inner),
        st.builds(ex.Field, inner, NAMES),
        st.builds(ex.ArrayOf, some),
        st.builds(ex.RowOf, some),
        st.builds(lambda arguments, filter, over: ex.Call(("f",), arguments, filter=filter, over=over), some,
                  st.none() | inner, st.none() | spec),
        st.builds(lambda first, second: ex.Call(("FLOOR",), (first, ex.Symbol("HOUR"))), inner, inner),
        st.builds(lambda operand: ex.Subquery(qu.Select((qu.SelectItem(operand),))), inner),
        st.builds(lambda operand: ex.Exists(qu.Values(((operand,),))), inner),
    )  # fmt: skip


EXPRESSIONS = st.recursive(LEAVES, _larger, max_leaves=8)


def _is_query(items: tuple[Expression, ...]) -> bool:
    return len(items) == 1 and isinstance(items[0], ex.Subquery)


@settings(max_examples=60)
@given(EXPRESSIONS)
def test_every_expression_parses_to_itself(expression: Expression) -> None:
    assert parse_expression(print_expression(expression)) == expression


@settings(max_examples=40)
@given(TYPES)
def test_every_type_parses_to_itself(type_: DataType) -> None:
    assert parse_type(data_type(type_)) == type_


RELATIONS = st.recursive(
    st.builds(lambda name: qu.TableName((name,)), NAMES),
    lambda inner: st.one_of(
        st.builds(lambda left, right, on: qu.Join("LEFT", left, right, on), inner, inner, LEAVES),
        st.builds(lambda left, right: qu.Join("CROSS", left, right), inner, inner),
        st.builds(lambda left, right: qu.Join("INNER", left, right, using=("a", "b")), inner, inner),
        st.builds(lambda of, name: qu.Aliased(of, name, ("x",)), inner, NAMES),
        st.builds(lambda of: qu.Derived(qu.Select((qu.SelectItem(ex.Star()),), of)), inner),
        st.builds(qu.Snapshot, inner, LEAVES),
    ),
    max_leaves=5,
)
QUERIES: st.SearchStrategy[Query] = st.recursive(
    st.builds(
        lambda item, of, where, groups: qu.Select((qu.SelectItem(item, "x"),), of, where, groups),
        EXPRESSIONS,
        RELATIONS,
        st.none() | LEAVES,
        st.none() | st.lists(LEAVES, max_size=2).map(tuple),
    ),
    lambda inner: st.one_of(
        st.builds(qu.SetOperation, st.sampled_from(["UNION", "INTERSECT", "EXCEPT"]), inner, inner, st.booleans()),
        st.builds(lambda of, item: qu.Ordered(of, (ex.SortItem(item),), None, ex.Number("3")), inner, LEAVES),
        st.builds(lambda table, of: qu.With((qu.CommonTable("w", table),), of), inner, inner),
    ),
    max_leaves=4,
)


@settings(max_examples=40)
@given(QUERIES)
def test_every_query_parses_to_itself(query: Query) -> None:
    assert parse_query(print_query(query)) == query
