"""UNION, INTERSECT, EXCEPT, ORDER BY with LIMIT, ORDER BY time."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.table.plan.expressions import Column, SortKey, ref
from headwater.table.stream.operators.set_operations import SetOperationOperator
from headwater.table.stream.operators.sort import SortLimitOperator, TemporalSortOperator
from headwater.table.types import logical as t
from headwater.table.types.type_text import parse_type
from tests.unit.table.stream.epochs import (
    BACKENDS,
    Epochs,
    History,
    held_after,
    histories,
    queried,
)

K, V = Column(1, "k", t.STRING), Column(2, "v", t.BIGINT)
INPUT = (K, V)
ROWS = st.tuples(st.sampled_from([None, "a"]), st.sampled_from([None, 1, 2]))


@pytest.mark.parametrize("kind", BACKENDS)
@settings(max_examples=12)
@given(data=st.data())
def test_set_operations_are_those_of_duckdb(kind: str, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(["UNION", "INTERSECT", "EXCEPT"]))
    every = data.draw(st.booleans())
    left: History = data.draw(histories(ROWS))
    right: History = data.draw(histories(ROWS))
    made = Epochs(SetOperationOperator(INPUT, INPUT, name, every, INPUT), kind, replay=data.draw(st.booleans()))
    query = f"SELECT * FROM l {name}{' ALL' if every else ''} SELECT * FROM r"
    for epoch in range(max(len(left), len(right))):
        made.run(left[epoch] if epoch < len(left) else [], right[epoch] if epoch < len(right) else [])
        sides = {"l": (INPUT, held_after(left[: epoch + 1])), "r": (INPUT, held_after(right[: epoch + 1]))}
        assert made.table == queried(query, **sides)  # type: ignore[arg-type]


def test_a_row_that_is_gone_from_both_sides_leaves_no_state() -> None:
    made = Epochs(SetOperationOperator(INPUT, INPUT, "EXCEPT", True, INPUT))
    made.run([(("a", 1), 2)], [(("a", 1), 1)])
    assert made.table == Counter({("a", 1): 1})
    made.run([(("a", 1), -2)], [(("a", 1), -1)])
    assert not made.table and made.backend.number_of_entries() == 0


@pytest.mark.parametrize("updating", [False, True])
@settings(max_examples=12)
@given(data=st.data())
def test_the_first_rows_of_a_table(updating: bool, data: st.DataObject) -> None:
    history: History = data.draw(histories(ROWS, updating=updating))
    offset, limit = data.draw(st.sampled_from([None, 1, 2])), data.draw(st.sampled_from([None, 0, 1, 3]))
    order = [SortKey(ref(V), descending=True, nulls_first=False), SortKey(ref(K))]
    made = Epochs(SortLimitOperator(INPUT, order, offset, limit, INPUT, append_only=not updating), replay=True)
    bounds = (f" LIMIT {limit}" if limit is not None else "") + (f" OFFSET {offset}" if offset else "")
    query = f"SELECT * FROM held ORDER BY v DESC NULLS LAST, k NULLS FIRST{bounds}"
    for epoch, changes in enumerate(history):
        made.run(changes)
        assert made.table == queried(query, held=(INPUT, held_after(history[: epoch + 1])))


TIME = Column(3, "ts", parse_type("TIMESTAMP(3)"))


@pytest.mark.parametrize("kind", BACKENDS)
def test_rows_in_order_of_time(kind: str) -> None:
    order = [SortKey(ref(TIME)), SortKey(ref(V), descending=True, nulls_first=False)]
    made = Epochs(TemporalSortOperator((K, V, TIME), TIME, order, (K, V, TIME)), kind, replay=True)
    made.run([(("a", 1, 3000), 1), (("b", 2, 1000), 1), (("c", 3, 3000), 1), (("d", 1, 9000), 1)], watermark=4)
    assert [row[0] for row, _ in made.emitted] == ["b", "c", "a"]
    made.run([(("e", 1, 4000), 1), (("f", 1, 5000), 1), (("g", 7, 9000), 1), (("h", 7, None), 1)], watermark=8)
    assert [row[0] for row, _ in made.emitted] == ["f"] and made.late == 2  # the replay counts again
    assert made.operator.next_event_timer() == 9
    made.end()
    assert [row[0] for row, _ in made.emitted] == ["g", "d"] and made.backend.number_of_entries() == 0


def test_rows_of_processing_time_do_not_wait() -> None:
    order = [SortKey(ref(TIME)), SortKey(ref(V))]
    made = Epochs(TemporalSortOperator((K, V, TIME), TIME, order, (K, V, TIME), processing_time=True))
    made.run([(("a", 2, 3000), 1), (("b", 1, 3000), 1)], now=3)
    assert [row[0] for row, _ in made.emitted] == ["b", "a"]
