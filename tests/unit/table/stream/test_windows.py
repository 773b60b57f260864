"""Windows of rows: TUMBLE, HOP and CUMULATE row by row, SESSION when it is over."""

from __future__ import annotations

import datetime
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.common.ids import MAX_WATERMARK
from headwater.operators.base import OperatorContext
from headwater.table.plan.expressions import Column
from headwater.table.plan.nodes import Values, WindowTable
from headwater.table.stream.changes import Changes
from headwater.table.stream.operators.session import SessionAssignOperator
from headwater.table.stream.operators.windows import WindowAssignOperator
from headwater.table.stream.rows import frozen_rows
from headwater.table.types import logical as t
from headwater.table.types.type_text import parse_type
from tests.unit.table.stream.epochs import BACKENDS, Epochs, Row, changes_of

K, V, TIME = Column(1, "k", t.STRING), Column(2, "v", t.BIGINT), Column(3, "ts", parse_type("TIMESTAMP(3)"))
INPUT = (K, V, TIME)


def added(time: Column = TIME) -> tuple[Column, Column, Column]:
    bound = parse_type("TIMESTAMP(3)")
    return Column(21, "window_start", bound), Column(22, "window_end", bound), Column(23, "window_time", time.type)


def node(kind: str, size: int, step: int = 0, offset: int = 0, time: Column = TIME) -> WindowTable:
    return WindowTable(Values((), (K, V, time)), kind, time, size, step, offset, (K,), added(time))


class Listed:
    def __init__(self) -> None:
        self.rows: list[tuple[Row, int]] = []

    def emit(self, values: list[Any], timestamps: Any) -> None:
        for changes in values:
            self.rows += zip(frozen_rows(changes.rows), changes.weight_array().tolist(), strict=True)


def assigned(window: WindowTable, changes: Changes, zone: str = "UTC") -> list[tuple[Row, int]]:
    operator, out = WindowAssignOperator(window.input.columns, window, window.columns, zone=zone), Listed()
    operator.setup(OperatorContext("windows", "windows", 0, 1, 128), out)  # type: ignore[arg-type]
    operator.open()
    operator.process_batch([changes], None)
    return out.rows


def windows_of(kind: str, size: int, step: int, offset: int, moment: int) -> set[tuple[int, int]]:
    """All windows that have the moment, from their definition."""
    near = range(-2 - abs(moment) // size - abs(offset), 3 + abs(moment) // size + abs(offset))
    if kind == "TUMBLE":
        found = {(offset + n * size, offset + (n + 1) * size) for n in near}
    elif kind == "HOP":
        steps = range(near.start * (size // step), near.stop * (size // step))
        found = {(offset + n * step, offset + n * step + size) for n in steps}
    else:
        ends = range(step, size + 1, step)
        found = {(offset + n * size, offset + n * size + end) for n in near for end in ends}
    return {(start, end) for start, end in found if start <= moment < end}


@settings(max_examples=60)
@given(
    kind=st.sampled_from(["TUMBLE", "HOP", "CUMULATE"]),
    step=st.integers(1, 5),
    times=st.integers(1, 4),
    offset=st.integers(-4, 4),
    moments=st.lists(st.none() | st.integers(-20_500, 20_500), max_size=6),
)
def test_each_row_is_in_all_its_windows(
    kind: str, step: int, times: int, offset: int, moments: list[int | None]
) -> None:
    size = step * times
    rows = [(("a", n, moment), 1 - 2 * (n % 2)) for n, moment in enumerate(moments)]
    found = assigned(node(kind, size, 0 if kind == "TUMBLE" else step, offset), changes_of(rows, INPUT))
    expected = Counter(
        ((*row, start * 1000, end * 1000, end * 1000 - 1000), weight)
        for row, weight in rows
        if row[2] is not None
        for start, end in windows_of(kind, size, step, offset, row[2] // 1000)
    )
    assert Counter(found) == expected


def test_windows_of_instants_are_local() -> None:
    ltz = Column(3, "ts", parse_type("TIMESTAMP_LTZ(3)"))
    hour = 3_600_000_000
    new_york = assigned(
        node("TUMBLE", 24 * 3_600_000, time=ltz), changes_of([(("a", 1, 3 * hour), 1)], (K, V, ltz)), "America/New_York"
    )
    # 03:00 UTC on 1 January is the evening before in New York.
    assert new_york == [(("a", 1, 3 * hour, -24 * hour, 0, 5 * hour - 1000), 1)]


def test_a_day_of_25_hours_ends_once() -> None:
    ltz = Column(3, "ts", parse_type("TIMESTAMP_LTZ(3)"))
    moment = datetime.datetime(2024, 11, 3, 5, 30, tzinfo=datetime.UTC)  # 01:30, for the first time
    us = round(moment.timestamp() * 1e6)
    ((row, _),) = assigned(
        node("TUMBLE", 3_600_000, time=ltz), changes_of([(("a", 1, us), 1)], (K, V, ltz)), "America/New_York"
    )
    assert row[5] == round(datetime.datetime(2024, 11, 3, 7, tzinfo=datetime.UTC).timestamp() * 1e6) - 1000


# -- sessions ---------------------------------------------------------------------------------------------------------

GAP = 5


def sessions(rows: list[Row]) -> list[tuple[str, int, int, list[Row]]]:
    found: list[tuple[str, int, int, list[Row]]] = []
    for row in sorted(rows, key=lambda each: (str(each[0]), each[2])):
        moment = row[2] // 1000
        if found and found[-1][0] == row[0] and moment <= found[-1][2]:
            key, start, _, held = found.pop()
            found.append((key, start, moment + GAP, [*held, row]))
        else:
            found.append((row[0], moment, moment + GAP, [row]))
    return found


def assign(kind: str, replay: bool) -> Epochs:
    window = node("SESSION", GAP)
    return Epochs(SessionAssignOperator(INPUT, window, window.columns), kind, replay)


ROWS = st.tuples(st.sampled_from(["a", "b", None]), st.integers(0, 3), st.integers(0, 60).map(lambda ms: ms * 1000))


@pytest.mark.parametrize("kind", BACKENDS)
@settings(max_examples=12)
@given(epochs=st.lists(st.lists(ROWS, max_size=6), min_size=1, max_size=4), replay=st.booleans())
def test_sessions_that_are_over(kind: str, epochs: list[list[Row]], replay: bool) -> None:
    assigner = assign(kind, replay)
    open_rows: list[Row] = []
    rows_out: Counter[Row] = Counter()
    watermark, late = -1, 0
    for n, rows in enumerate([*epochs, []]):
        # A row is in time if the session that it makes or joins is not over yet.
        in_time = [each for each in sessions(open_rows + rows) if each[2] - 1 > watermark]
        late += len(open_rows) + len(rows) - sum(len(each[3]) for each in in_time)
        watermark = (n + 1) * 12 if n < len(epochs) else 1000
        assigner.run([(row, 1) for row in rows], watermark=watermark)
        for _, start, end, held in in_time:
            if end - 1 <= watermark:
                rows_out.update((*row, start * 1000, end * 1000, end * 1000 - 1000) for row in held)
        open_rows = [row for each in in_time if each[2] - 1 > watermark for row in each[3]]
        assert assigner.table == rows_out
        assert assigner.late == late * (2 if replay else 1)
    assert assigner.backend.number_of_entries() == 0 and assigner.operator.next_event_timer() is None


@pytest.mark.parametrize("kind", BACKENDS)
@settings(max_examples=12)
@given(
    epochs=st.lists(st.tuples(st.integers(0, 8), st.lists(st.sampled_from(["a", "b"]), max_size=2)), max_size=8),
    replay=st.booleans(),
)
def test_sessions_by_processing_time(kind: str, epochs: list[tuple[int, list[str]]], replay: bool) -> None:
    window = node("SESSION", GAP)
    assigner = Epochs(SessionAssignOperator(INPUT, window, window.columns, event_time=False), kind, replay)
    now, rows = 0, list[Row]()
    for step, keys in epochs:
        now += step
        new: list[Row] = [(key, number, now * 1000) for number, key in enumerate(keys)]
        rows += new
        assigner.run([(row, 1) for row in new], now=now)
        ends = [each[2] for each in sessions(rows)]
        assert assigner.table.total() == sum(len(each[3]) for each in sessions(rows) if each[2] < now)
        # It is woken right behind the end of the first session that is open.
        assert assigner.operator.next_processing_timer() == min((end + 1 for end in ends if end >= now), default=None)
    assigner.run([], now=now, watermark=MAX_WATERMARK)
    assert set(assigner.table) == {
        (*row, start * 1000, end * 1000, end * 1000 - 1000) for _, start, end, held in sessions(rows) for row in held
    }
    assert assigner.backend.number_of_entries() == 0 and not assigner.late


@pytest.mark.parametrize("kind", BACKENDS)
def test_a_row_that_is_taken_back_splits_its_session(kind: str) -> None:
    made = assign(kind, replay=True)
    made.run([(("a", 1, 0), 1), (("a", 2, 5000), 1), (("a", 3, 10_000), 1)], watermark=12)
    assert not made.emitted and made.operator.next_event_timer() == 14
    made.run([(("a", 2, 5000), -1)], watermark=13)
    assert made.emitted == [(("a", 1, 0, 0, 5000, 4000), 1)] and not made.late
    made.run([(("a", 3, 10_000), -1)], watermark=100)
    assert not made.emitted and made.backend.number_of_entries() == 0
    made.run([(("a", 3, 50_000), 1)])
    assert not made.emitted and made.late == 2  # the replay counts again
