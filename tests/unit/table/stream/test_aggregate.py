"""GROUP BY: after every epoch, the changes add up to what DuckDB finds in the rows that are there."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.table.plan.expressions import AggregateCall, Column
from headwater.table.stream.operators.aggregate import GroupAggregateOperator
from headwater.table.types import logical as t
from headwater.table.types.type_text import parse_type
from tests.unit.table.stream.epochs import (
    BACKENDS,
    Epochs,
    History,
    Row,
    aggregate,
    held_after,
    histories,
    queried,
    text,
)

K, V, S, F = Column(1, "k", t.STRING), Column(2, "v", t.BIGINT), Column(3, "s", t.STRING), Column(4, "f", t.BOOLEAN)
INPUT = (K, V, S, F)
ROWS = st.tuples(
    st.sampled_from([None, "a", "b"]),
    st.sampled_from([None, -3, 1, 2, 7]),
    st.sampled_from([None, "x", "y"]),
    st.sampled_from([None, True, False]),
)
CALLS: dict[str, AggregateCall] = {
    "count(*)": aggregate("COUNT"),
    "count(v)": aggregate("COUNT", V),
    "sum(v)::BIGINT": aggregate("SUM", V),
    "(sum(v) // count(v))::BIGINT": aggregate("AVG", V),
    "min(v)": aggregate("MIN", V),
    "max(s)": aggregate("MAX", S),
    "count(*) FILTER (f)": aggregate("COUNT", filter=F),
    "max(v) FILTER (f)": aggregate("MAX", V, filter=F),
    "count(DISTINCT v)": aggregate("COUNT", V, distinct=True),
    "(sum(DISTINCT v) FILTER (f))::BIGINT": aggregate("SUM", V, distinct=True, filter=F),
}


def results(calls: dict[str, AggregateCall]) -> list[tuple[Column, AggregateCall]]:
    return [(Column(10 + place, f"r{place}", call.type), call) for place, call in enumerate(calls.values())]


def operator(groups: tuple[Column, ...], calls: dict[str, AggregateCall], **options: Any) -> GroupAggregateOperator:
    made = results(calls)
    return GroupAggregateOperator(INPUT, groups, made, (*groups, *(column for column, _ in made)), **options)


@pytest.mark.parametrize("kind", BACKENDS)
@pytest.mark.parametrize("updating", [False, True])
@settings(max_examples=12)
@given(data=st.data())
def test_the_changes_add_up_to_what_duckdb_finds(kind: str, updating: bool, data: st.DataObject) -> None:
    history: History = data.draw(histories(ROWS, updating=updating))
    groups = data.draw(st.sampled_from([(), (K,), (S, K), (V,)]))
    made = Epochs(operator(groups, CALLS, append_only=not updating), kind, replay=data.draw(st.booleans()))
    names = "".join(f"{column.name}, " for column in groups)
    by = f" GROUP BY {names[:-2]}" if groups else ""
    for epoch, changes in enumerate(history):
        made.run(changes, cuts=data.draw(st.integers(1, 3)))
        rows = held_after(history[: epoch + 1])
        assert made.table == queried(f"SELECT {names}{', '.join(CALLS)} FROM held{by}", held=(INPUT, rows))
        assert max(Counter(row for row, _ in made.emitted).values(), default=1) == 1
    assert made.backend.number_of_entries() > 0 or not made.table


@pytest.mark.parametrize("kind", BACKENDS)
@settings(max_examples=12)
@given(history=histories(ROWS))
def test_aggregates_that_need_all_values(kind: str, history: History) -> None:
    """Those of unordered values; the order is what `test_order_is_that_of_coming` is about."""
    calls = {
        "list(v)": aggregate("ARRAY_AGG", V),
        "list(DISTINCT s)": aggregate("ARRAY_AGG", S, distinct=True),
        "string_agg(s, ';')": aggregate("LISTAGG", S, text(";")),
        "list(v) FILTER (f)": aggregate("ARRAY_AGG", V, filter=F),
    }
    made = Epochs(operator((K,), calls), kind, replay=True)
    for epoch, changes in enumerate(history):
        made.run(changes)
        expected: dict[Any, list[list[Any]]] = {}
        for key, value, word, passes in held_after(history[: epoch + 1]):
            lists = expected.setdefault(key, [[], [], [], []])
            lists[0].append(value)
            lists[1] += [word] if word not in lists[1] else []
            lists[2] += [word] if word is not None else []
            lists[3] += [value] if passes else []
        shown = {
            (k, a and _bag(a), b and _bag(b), c and _bag(c.split(";")), d and _bag(d)) for k, a, b, c, d in made.table
        }
        assert shown == {(key, *(_bag(each) if each else None for each in lists)) for key, lists in expected.items()}


def _bag(values: Any) -> Any:
    return frozenset(Counter(values).items())


def test_order_is_that_of_coming() -> None:
    calls = {
        "first": aggregate("FIRST_VALUE", V),
        "last": aggregate("LAST_VALUE", V),
        "all": aggregate("LISTAGG", S),
        "bag": aggregate("COLLECT", V),
    }
    made = Epochs(operator((K,), calls), replay=True)
    made.run(
        [(("a", 1, "x", None), 1), (("a", 2, "y", None), 1), (("a", 1, "x", None), 1), (("a", None, None, None), 1)]
    )
    assert made.table == Counter([("a", 1, 1, "x,y,x", ((1, 2), (2, 1)))])
    made.run([(("a", 1, "x", None), -1)])
    assert made.table == Counter([("a", 2, 1, "y,x", ((1, 1), (2, 1)))])
    made.run([(("a", 1, "x", None), -1), (("a", 2, "y", None), -1)])
    assert made.table == Counter([("a", None, None, None, ())])
    made.run([(("a", None, None, None), -1)])
    assert not made.table and made.backend.number_of_entries() == 0


def test_only_what_changes_is_handed_on() -> None:
    made = Epochs(operator((K,), {"max": aggregate("MAX", V), "x": aggregate("COUNT", S, distinct=True)}))
    made.run([(("a", 5, "x", None), 1), (("b", 1, "x", None), 1)])
    assert sorted(made.emitted) == [(("a", 5, 1), 1), (("b", 1, 1), 1)]
    made.run([(("a", 4, "x", None), 1), (("b", 2, "x", None), 1)])
    assert sorted(made.emitted) == [(("b", 1, 1), -1), (("b", 2, 1), 1)]
    made.run([(("a", 9, "z", None), 1), (("a", 9, "z", None), -1)])
    assert made.emitted == []


@pytest.mark.parametrize("kind", BACKENDS)
def test_distinct_rows_are_groups_without_calls(kind: str) -> None:
    made = Epochs(operator((K, S), {}), kind, replay=True)
    made.run([(("a", 1, "x", None), 1), (("a", 2, "x", None), 1), ((None, 2, None, None), 1)])
    assert made.table == Counter([("a", "x"), (None, None)])
    made.run([(("a", 1, "x", None), -1), ((None, 2, None, None), -1)])
    assert made.table == Counter([("a", "x")]) and made.emitted == [((None, None), -1)]


def test_one_row_without_input() -> None:
    made = Epochs(operator((), {"n": aggregate("COUNT"), "s": aggregate("SUM", V)}), replay=True)
    made.run([])
    assert made.table == Counter([(0, None)])
    made.run([])
    assert made.emitted == []
    made.run([(("a", 3, None, None), 1)])
    made.run([(("a", 3, None, None), -1)])
    assert made.table == Counter([(0, None)])


def test_sums_of_decimals_and_doubles() -> None:
    d, f = Column(5, "d", parse_type("DECIMAL(10, 2)")), Column(6, "f", t.DOUBLE)
    made_calls = [
        (Column(11, "sum", parse_type("DECIMAL(38, 2)")), aggregate("SUM", d)),
        (Column(12, "avg", parse_type("DECIMAL(38, 6)")), aggregate("AVG", d)),
        (Column(13, "max", parse_type("DECIMAL(10, 2)")), aggregate("MAX", d)),
        (Column(14, "var", t.DOUBLE), aggregate("VAR_POP", f)),
    ]
    columns = (K, *(column for column, _ in made_calls))
    made = Epochs(GroupAggregateOperator((K, d, f), (K,), made_calls, columns), replay=True)
    made.run([(("a", Decimal("1.25"), 1.0), 1), (("a", Decimal("2.00"), 3.0), 3)])
    assert made.table == Counter([("a", Decimal("7.25"), Decimal("1.812500"), Decimal("2.00"), 0.75)])
    made.run([(("a", Decimal("2.00"), 3.0), -3)])
    assert made.table == Counter([("a", Decimal("1.25"), Decimal("1.250000"), Decimal("1.25"), 0.0)])


def test_a_group_that_nobody_touches_expires() -> None:
    made = Epochs(operator((K,), {"n": aggregate("COUNT"), "d": aggregate("COUNT", V, distinct=True)}, ttl_ms=1000))
    made.run([(("a", 1, None, None), 1)], now=0)
    made.run([(("a", 1, None, None), 1)], now=900)
    assert made.table == Counter([("a", 2, 1)])
    made.run([(("a", 1, None, None), 1)], now=2000)
    assert made.emitted == [(("a", 1, 1), 1)]


@pytest.mark.parametrize("opened", [False, True])
def test_a_call_keeps_its_state_when_another_is_added(opened: bool) -> None:
    first = Epochs(operator((K,), {"s": aggregate("SUM", V)}))
    first.run([(("a", 5, None, None), 1)])
    second = Epochs(operator((K,), {"m": aggregate("MIN", V), "s": aggregate("SUM", V)}, append_only=True))
    if opened:
        for section in first.backend.full_sections():
            second.backend.load_section(section)
    else:
        second._start(second.operator, first.backend.full_sections())
    second.table["a", None, 5] = 1
    second.run([(("a", 2, None, None), 1)])
    assert second.emitted == [(("a", None, 5), -1), (("a", 2, 7), 1)]


# -- windows ----------------------------------------------------------------------------------------------------------

END = Column(7, "window_end", parse_type("TIMESTAMP(3)"))
MINUTE = 60_000


def windowed(kind: str = "heap", by: Column = K, **options: Any) -> Epochs:
    calls = [
        (Column(11, "n", t.BIGINT), aggregate("COUNT")),
        (Column(12, "d", t.BIGINT), aggregate("COUNT", V, distinct=True)),
    ]
    made = GroupAggregateOperator(
        (K, V, END), (by, END), calls, (by, END, *(c for c, _ in calls)), window_end=END, **options
    )
    return Epochs(made, kind, replay=True)


@pytest.mark.parametrize("kind", BACKENDS)
def test_a_window_is_emitted_once_when_the_watermark_passes_it(kind: str) -> None:
    made = windowed(kind)
    minute = MINUTE * 1000
    made.run([(("a", 1, minute), 1), (("a", 1, minute), 1), (("b", 2, 2 * minute), 1)], watermark=10)
    assert made.emitted == [] and made.operator.next_event_timer() == MINUTE - 1
    made.run([(("a", 3, minute), 1)], watermark=MINUTE - 2)
    assert made.emitted == []
    made.run([(("a", 4, minute), 1), (("b", 1, minute), 1)], watermark=MINUTE - 1)
    assert made.table == Counter([("a", minute, 4, 3), ("b", minute, 1, 1)])
    made.run([(("a", 4, minute), 1), (("c", 1, 2 * minute), 1)], watermark=MINUTE)
    assert made.emitted == [] and made.late == 2  # the replay counts again
    made.run([(("c", 1, 2 * minute), -1)])
    made.end()
    assert made.emitted == [(("b", 2 * minute, 1, 1), 1)]
    assert made.backend.number_of_entries() == 0 and made.operator.next_event_timer() is None


@pytest.mark.parametrize(("by", "key"), [(K, "a"), (V, 1)])
def test_local_windows_end_when_their_zone_says(by: Column, key: Any) -> None:
    made = windowed(by=by, zone="America/New_York", zoned=True)
    hour = 3600 * 1000
    made.run([(("a", 1, hour * 1000), 1)], watermark=5 * hour)
    assert made.emitted == [] and made.operator.next_event_timer() == 6 * hour - 1
    made.run([], watermark=6 * hour - 1)
    assert made.emitted == [((key, hour * 1000, 1, 1), 1)]
    made.run([(("b", 1, hour * 1000), 1)])
    assert not made.emitted and made.late == 2  # the replay counts again


def test_windows_of_processing_time() -> None:
    made = windowed(time="processing")
    minute = MINUTE * 1000
    made.run([(("a", 1, minute), 1)], now=10, watermark=MINUTE * 5)
    assert made.emitted == [] and made.operator.next_processing_timer() == MINUTE - 1
    made.run([(("b", 1, 2 * minute), 1)], now=MINUTE)
    assert made.emitted == [(("a", minute, 1, 1), 1)] and made.operator.next_processing_timer() == 2 * MINUTE - 1
    made.end()
    assert made.emitted == [(("b", 2 * minute, 1, 1), 1)]


WINDOW_ROWS = st.tuples(st.sampled_from(["a", None]), st.sampled_from([None, 1, 2]), st.integers(1, 4))


@pytest.mark.parametrize("kind", BACKENDS)
@settings(max_examples=12)
@given(epochs=st.lists(st.lists(WINDOW_ROWS, max_size=6), min_size=1, max_size=5), steps=st.data())
def test_windows_that_are_over_are_those_of_duckdb(kind: str, epochs: list[list[Row]], steps: st.DataObject) -> None:
    made = windowed(kind)
    in_time: list[Row] = []
    watermark, late = -1, 0
    for rows in [*epochs, []]:
        come = [(key, value, window * 10_000) for key, value, window in rows]
        held = [row for row in come if row[2] // 1000 - 1 > watermark]
        late += len(come) - len(held)
        in_time += held
        watermark = max(watermark, steps.draw(st.integers(0, 45)))
        made.run([(row, 1) for row in come], watermark=watermark, cuts=2)
        over = [row for row in in_time if row[2] // 1000 - 1 <= watermark]
        query = "SELECT k, window_end, count(*), count(DISTINCT v) FROM held GROUP BY k, window_end"
        assert made.table == queried(query, held=((K, V, END), over))
        assert all(weight == 1 for _, weight in made.emitted)
    assert made.late == 2 * late  # the replay counts again


@settings(max_examples=40)
@given(epochs=st.lists(st.lists(WINDOW_ROWS, max_size=6), min_size=1, max_size=5), steps=st.data())
def test_windows_of_integers_go_from_backend_to_backend(epochs: list[list[Row]], steps: st.DataObject) -> None:
    """A timer of theirs stands for all keys of its key group."""
    made = windowed(by=V)
    in_time: list[Row] = []
    watermark = -1
    for rows in [*epochs, []]:
        come = [(key, value, window * 10_000) for key, value, window in rows]
        in_time += [row for row in come if row[2] // 1000 - 1 > watermark]
        watermark = max(watermark, steps.draw(st.integers(0, 45)))
        made._kind = steps.draw(st.sampled_from(BACKENDS))  # from the end of this epoch on
        made.run([(row, 1) for row in come], watermark=watermark)
        over = [row for row in in_time if row[2] // 1000 - 1 <= watermark]
        query = "SELECT v, window_end, count(*), count(DISTINCT v) FROM held GROUP BY v, window_end"
        assert made.table == queried(query, held=((K, V, END), over))
    made.end()
    assert made.backend.number_of_entries() == 0 and made.operator.next_event_timer() is None


@pytest.mark.parametrize("kind", BACKENDS)
def test_windows_of_integers_are_split_between_partitions(kind: str) -> None:
    whole = windowed(by=V)
    whole.run([((None, number, 10_000 * (number % 3 + 1)), 1) for number in range(60)], watermark=1)
    found: Counter[Row] = Counter()
    for groups in (range(40), range(40, 128)):
        part = windowed(kind, by=V)
        part._key_groups = groups
        part._start(part.operator, [each for each in whole.backend.full_sections() if each.key_group in groups])
        for watermark in (9, 19, 29):
            part.run([], watermark=watermark)
            assert all(row[1] == (watermark + 1) * 1000 for row, _ in part.emitted)
        found += part.table
    assert found == Counter((number, 10_000 * (number % 3 + 1), 1, 1) for number in range(60))


def test_one_partition_has_the_row_of_an_aggregation_without_groups() -> None:
    emitted = []
    for groups in (range(64), range(64, 128)):
        made = Epochs(operator((), {"n": aggregate("COUNT")}), key_groups=groups)
        made.run([])
        emitted += made.emitted
    assert emitted == [((0,), 1)]
