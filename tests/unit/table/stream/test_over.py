"""OVER: what DuckDB finds, for any order and frame; by time, for all rows up to the watermark."""

from __future__ import annotations

import datetime
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.common.errors import SqlError
from headwater.table.plan import calls
from headwater.table.plan.expressions import Column, Frame, FrameBound, Literal, SortKey, WindowCall, ref
from headwater.table.stream.operators.over import OverOperator, over_operator
from headwater.table.stream.operators.over_time import TimedOverOperator
from headwater.table.types import logical as t
from headwater.table.types.type_text import parse_type
from tests.unit.table.stream.epochs import BACKENDS, Epochs, History, Row, aggregate, held_after, histories, queried

K, V, S, F = Column(1, "k", t.STRING), Column(2, "v", t.BIGINT), Column(3, "s", t.STRING), Column(4, "f", t.BOOLEAN)
INPUT = (K, V, S, F)
ROWS = st.tuples(
    st.sampled_from([None, "a", "b"]),
    st.sampled_from([None, -3, 1, 2, 7]),
    st.sampled_from([None, "x", "y"]),
    st.sampled_from([None, True, False]),
)


def number(value: int) -> Literal:
    return Literal(t.INT.not_null(), value)


def function(name: str, *arguments: Any) -> Any:
    rexes = [ref(each) if isinstance(each, Column) else each for each in arguments]
    return calls.aggregate(calls.find_function(name), rexes)


AGGREGATES = {
    "count(*)": aggregate("COUNT"),
    "sum(v)": aggregate("SUM", V),
    "max(s)": aggregate("MAX", S),
    "min(v) FILTER (f)": aggregate("MIN", V, filter=F),
    "count(v) FILTER (f)": aggregate("COUNT", V, filter=F),
    "count(DISTINCT v)": aggregate("COUNT", V, distinct=True),
}
FUNCTIONS = {
    "row_number()": function("ROW_NUMBER"),
    "rank()": function("RANK"),
    "dense_rank()": function("DENSE_RANK"),
    "percent_rank()": function("PERCENT_RANK"),
    "cume_dist()": function("CUME_DIST"),
    "ntile(3)": function("NTILE", number(3)),
    "lag(v)": function("LAG", V),
    "lag(v, 2, 9)": function("LAG", V, number(2), Literal(t.BIGINT, 9)),
    "lead(s, 1)": function("LEAD", S, number(1)),
}
BOUNDS = st.sampled_from(["UNBOUNDED PRECEDING", "PRECEDING", "CURRENT ROW", "FOLLOWING", "UNBOUNDED FOLLOWING"])
_PLACE = {name: n for n, name in enumerate(["UNBOUNDED PRECEDING", "PRECEDING", "CURRENT ROW", "FOLLOWING"])}


@st.composite
def frames(draw: st.DrawFn) -> tuple[Frame, str]:
    unit = draw(st.sampled_from(["ROWS", "RANGE"]))
    start = draw(BOUNDS.filter(lambda each: each != "UNBOUNDED FOLLOWING"))
    end = draw(BOUNDS.filter(lambda each: each != "UNBOUNDED PRECEDING" and _PLACE.get(each, 4) >= _PLACE[start]))
    made, texts = [], []
    for kind in (start, end):
        offset = draw(st.integers(0, 4)) if kind in ("PRECEDING", "FOLLOWING") else None
        made.append(FrameBound(kind, None if offset is None else number(offset)))
        texts.append(kind if offset is None else f"{offset} {kind}")
    return Frame(unit, *made), f"{unit} BETWEEN {' AND '.join(texts)}"


def over(call: Any, partition: tuple[Column, ...], order: list[SortKey], frame: Frame | None = None) -> WindowCall:
    return WindowCall(call.type, call, tuple(ref(each) for each in partition), tuple(order), frame)


def sql(keys: list[SortKey]) -> str:
    return ", ".join(
        f"{each.expression.column.name} {'DESC' if each.descending else 'ASC'}"  # type: ignore[attr-defined]
        f" NULLS {'FIRST' if each.nulls_first else 'LAST'}"
        for each in keys
    )


def order_by(*keys: SortKey) -> str:
    return f" ORDER BY {sql(list(keys))}" if keys else ""


@pytest.mark.parametrize("kind", BACKENDS)
@settings(max_examples=12)
@given(data=st.data())
def test_any_order_and_frame_on_an_updating_input(kind: str, data: st.DataObject) -> None:
    history: History = data.draw(histories(ROWS, epochs=3))
    one = SortKey(ref(V), data.draw(st.booleans()), data.draw(st.booleans()))
    all_columns = [one, SortKey(ref(S)), SortKey(ref(F)), SortKey(ref(K))]  # rows that are equal in these are equal
    partition = data.draw(st.sampled_from([(), (K,)]))
    by = "PARTITION BY k" if partition else ""
    made: list[WindowCall] = []
    texts: list[str] = []
    for text, call in AGGREGATES.items():
        frame, frame_text = data.draw(frames())
        ranged = frame.unit == "RANGE"
        if ranged and data.draw(st.booleans()):
            frame, frame_text = None, ""  # type: ignore[assignment]
        keys = [one] if ranged else all_columns
        if not frame_text and data.draw(st.booleans()):
            keys = []
        made.append(over(call, partition, keys, frame))
        texts.append(f"({text} OVER ({by}{order_by(*keys)} {frame_text}))")
    for text, call in FUNCTIONS.items():
        keys = [one] if "rank" in text or "dist" in text else all_columns
        made.append(over(call, partition, keys))
        texts.append(f"({text} OVER ({by}{order_by(*keys)}))")
    texts[1] = f"{texts[1]}::BIGINT"
    results = [(Column(20 + n, f"r{n}", call.type), call) for n, call in enumerate(made)]
    operator = OverOperator(INPUT, results, (*INPUT, *(column for column, _ in results)))
    epochs = Epochs(operator, kind, replay=data.draw(st.booleans()))
    for epoch, changes in enumerate(history):
        epochs.run(changes, cuts=2)
        rows = held_after(history[: epoch + 1])
        assert epochs.table == queried(f"SELECT *, {', '.join(texts)} FROM held", held=(INPUT, rows))


def test_ranges_of_decimals_and_times() -> None:
    amount, moment = Column(5, "d", parse_type("DECIMAL(5, 1)")), Column(6, "ts", parse_type("TIMESTAMP(3)"))
    hour = Literal(parse_type("INTERVAL HOUR"), datetime.timedelta(hours=1))
    ranges = [
        (amount, Literal(parse_type("DECIMAL(2, 1)"), 1), "1 PRECEDING"),
        (moment, hour, "INTERVAL 1 HOUR PRECEDING"),
    ]
    made, texts = [], []
    for column, offset, text in ranges:
        frame = Frame("RANGE", FrameBound("PRECEDING", offset), FrameBound("CURRENT ROW"))
        made.append(over(aggregate("COUNT"), (), [SortKey(ref(column))], frame))
        texts.append(f"count(*) OVER (ORDER BY {column.name} NULLS FIRST RANGE BETWEEN {text} AND CURRENT ROW)")
    results = [(Column(20 + n, f"r{n}", call.type), call) for n, call in enumerate(made)]
    epochs = Epochs(OverOperator((amount, moment), results, (amount, moment, *(each for each, _ in results))))
    rows: list[tuple[Row, int]] = [((n, n * 1_800_000_000), 1) for n in (0, 1, 1, 3, 4, None) if n is not None]
    rows.append(((None, None), 2))
    epochs.run(rows)
    held = [row for row, weight in rows for _ in range(weight)]
    assert epochs.table == queried(f"SELECT *, {', '.join(texts)} FROM held", held=((amount, moment), held))


def test_months_are_refused() -> None:
    moment = Column(6, "ts", parse_type("TIMESTAMP(3)"))
    frame = Frame("RANGE", FrameBound("PRECEDING", Literal(parse_type("INTERVAL MONTH"), 1)), FrameBound("CURRENT ROW"))
    made = Column(9, "n", t.BIGINT), over(aggregate("COUNT"), (), [SortKey(ref(moment))], frame)
    epochs = Epochs(OverOperator((moment,), [made], (moment, made[0])))
    with pytest.raises(SqlError, match="months"):
        epochs.run([((0,), 1)])


# -- by time ----------------------------------------------------------------------------------------------------------

TIME, SEQ = Column(7, "ts", parse_type("TIMESTAMP(3)")), Column(8, "seq", t.BIGINT)
TIMED = (K, V, S, F, TIME, SEQ)


def interval(ms: int) -> Literal:
    return Literal(parse_type("INTERVAL SECOND(3)"), datetime.timedelta(milliseconds=ms))


def back(unit: str, start: Literal | None, end: Literal | None = None) -> Frame:
    first = FrameBound("UNBOUNDED PRECEDING") if start is None else FrameBound("PRECEDING", start)
    return Frame(unit, first, FrameBound("CURRENT ROW") if end is None else FrameBound("PRECEDING", end))


TIME_CALLS: dict[str, tuple[Any, Frame | None]] = {
    "count(*) OVER (PARTITION BY k ORDER BY ts)": (aggregate("COUNT"), None),
    "max(s) OVER (PARTITION BY k ORDER BY ts, seq ROWS UNBOUNDED PRECEDING)": (
        aggregate("MAX", S), back("ROWS", None)
    ),
    "(sum(v) OVER (PARTITION BY k ORDER BY ts, seq ROWS UNBOUNDED PRECEDING))::BIGINT": (
        aggregate("SUM", V), back("ROWS", None)
    ),
    "(sum(v) OVER (PARTITION BY k ORDER BY ts, seq ROWS 2 PRECEDING))::BIGINT": (
        aggregate("SUM", V), back("ROWS", number(2))
    ),
    "min(v) FILTER (f) OVER (PARTITION BY k ORDER BY ts, seq ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING)": (
        aggregate("MIN", V, filter=F), back("ROWS", number(3), number(1))
    ),
    "count(v) OVER (PARTITION BY k ORDER BY ts RANGE INTERVAL 7 MILLISECOND PRECEDING)": (
        aggregate("COUNT", V), back("RANGE", interval(7))
    ),
    "row_number() OVER (PARTITION BY k ORDER BY ts, seq)": (function("ROW_NUMBER"), None),
    "rank() OVER (PARTITION BY k ORDER BY ts)": (function("RANK"), None),
    "dense_rank() OVER (PARTITION BY k ORDER BY ts)": (function("DENSE_RANK"), None),
    "lag(v, 2) OVER (PARTITION BY k ORDER BY ts, seq)": (function("LAG", V, number(2)), None),
}  # fmt: skip
DISTINCT = {
    "count(DISTINCT v) OVER (PARTITION BY k ORDER BY ts)": (aggregate("COUNT", V, distinct=True), None),
}


def timed(texts: dict[str, tuple[Any, Frame | None]], kind: str, replay: bool, **options: Any) -> Epochs:
    made = [over(call, (K,), [SortKey(ref(TIME))], frame) for call, frame in texts.values()]
    results = [(Column(20 + n, f"r{n}", call.type), call) for n, call in enumerate(made)]
    operator = over_operator(TIMED, results, (*TIMED, *(column for column, _ in results)), time=TIME, **options)
    assert isinstance(operator, TimedOverOperator)
    return Epochs(operator, kind, replay)


TIMED_ROWS = st.tuples(ROWS, st.integers(0, 40))


@pytest.mark.parametrize("kind", BACKENDS)
@settings(max_examples=12)
@given(
    epochs=st.lists(st.lists(TIMED_ROWS, max_size=6), min_size=1, max_size=5),
    replay=st.booleans(),
    distinct=st.booleans(),
)
def test_rows_up_to_the_watermark(kind: str, epochs: list[list[tuple[Row, int]]], replay: bool, distinct: bool) -> None:
    texts = {**TIME_CALLS, **(DISTINCT if distinct else {})}
    made = timed(texts, kind, replay)
    held: list[Row] = []
    watermark, late = -1, 0
    for n, rows in enumerate([*epochs, []]):
        come = [(*row, moment * 1000, 100 * n + place) for place, (row, moment) in enumerate(rows)]
        in_time = [row for row in come if row[4] // 1000 > watermark]
        late += len(come) - len(in_time)
        held += in_time
        watermark = (n + 1) * 9 if n < len(epochs) else 1000
        made.run([(row, 1) for row in come], watermark=watermark)
        assert all(weight == 1 for _, weight in made.emitted)
        over_now = [row for row in held if row[4] // 1000 <= watermark]
        assert made.table == queried(f"SELECT *, {', '.join(texts)} FROM held", held=(TIMED, over_now))
    assert made.late == late * (2 if replay else 1)


@pytest.mark.parametrize("kind", BACKENDS)
def test_only_what_frames_look_back_on_is_kept(kind: str) -> None:
    calls_ = {"range": (aggregate("COUNT"), back("RANGE", interval(5)))}
    made = timed(calls_, kind, replay=True)
    made.run([(("a", 1, None, None, moment * 1000, 0), 1) for moment in range(10)], watermark=9)
    made.backend.current_key = "a"
    assert len(made.operator._history.value()) == 5  # type: ignore[attr-defined]
    made.run([], watermark=20)
    assert made.backend.number_of_entries() == 0 and made.operator.next_event_timer() is None


def test_processing_time_emits_at_once() -> None:
    calls_ = {
        "n": (aggregate("COUNT"), back("ROWS", None)),
        "range": (aggregate("COUNT"), back("RANGE", interval(5))),
    }
    made = timed(calls_, "heap", replay=True, processing_time=True)
    made.run([(("a", 1, None, None, 1000, 0), 1), (("a", 1, None, None, 1000, 1), 1)], now=1)
    assert [row[-2:] for row, _ in made.emitted] == [(1, 2), (2, 2)]
    made.run([(("a", 1, None, None, 6000, 0), 1)], now=6)
    assert [row[-2:] for row, _ in made.emitted] == [(3, 3)]
    made.run([(("a", 1, None, None, 8000, 0), 1)], now=8)
    assert [row[-2:] for row, _ in made.emitted] == [(4, 2)]
    made.run([], now=100)
    made.backend.current_key = "a"
    assert made.operator._history.value() is None  # type: ignore[attr-defined]


def test_what_looks_ahead_is_computed_anew() -> None:
    calls_ = [(Column(20, "r", t.BIGINT), over(function("LEAD", V), (K,), [SortKey(ref(TIME))]))]
    operator = over_operator(TIMED, calls_, (*TIMED, calls_[0][0]), time=TIME)
    assert isinstance(operator, OverOperator)
    made = Epochs(operator)
    made.run([(("a", 1, None, None, 1000, 0), 1)])
    made.run([(("a", 2, None, None, 2000, 0), 1)])
    assert made.table == Counter([("a", 1, None, None, 1000, 0, 2), ("a", 2, None, None, 2000, 0, None)])
