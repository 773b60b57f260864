"""Top-N and deduplication: after every epoch, the rows that DuckDB ranks within the bounds."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.table.plan.expressions import Column, SortKey, ref
from headwater.table.stream.operators.rank import RankOperator
from headwater.table.types import logical as t
from headwater.table.types.type_text import parse_type
from tests.unit.table.stream.epochs import BACKENDS, Epochs, History, held_after, histories, queried

K, V, S, D = Column(1, "k", t.STRING), Column(2, "v", t.DOUBLE), Column(3, "s", t.STRING), Column(4, "d", t.BIGINT)
INPUT = (K, V, S, D)
RANK = Column(9, "rank", t.BIGINT)
ROWS = st.tuples(
    st.sampled_from([None, "a", "b"]),
    st.sampled_from([None, -1.0, 0.0, 2.5, "NaN"]),
    st.sampled_from([None, "x", "y", "z"]),
    st.integers(0, 3),
)


def key(column: Column, descending: bool = False, nulls_first: bool = True) -> SortKey:
    return SortKey(ref(column), descending, nulls_first)


def sql(keys: list[SortKey]) -> str:
    return ", ".join(
        f"{each.expression.column.name} {'DESC' if each.descending else 'ASC'}"  # type: ignore[attr-defined]
        f" NULLS {'FIRST' if each.nulls_first else 'LAST'}"
        for each in keys
    )


@pytest.mark.parametrize("kind", BACKENDS)
@pytest.mark.parametrize("updating", [False, True])
@settings(max_examples=12)
@given(data=st.data())
def test_the_rows_that_duckdb_ranks(kind: str, updating: bool, data: st.DataObject) -> None:
    history: History = data.draw(histories(ROWS, updating=updating))
    order = [key(V, data.draw(st.booleans()), data.draw(st.booleans()))]
    rank = data.draw(st.sampled_from(["ROW_NUMBER", "RANK", "DENSE_RANK"]))
    if rank == "ROW_NUMBER":
        order += [key(S, True), key(D)]  # equal rows are equal in all columns
    first = data.draw(st.integers(1, 2))
    last = data.draw(st.sampled_from([None, first, first + 1]))
    partition = data.draw(st.sampled_from([(), (K,), (K, S)]))
    numbered = data.draw(st.booleans())
    columns = (*INPUT, RANK) if numbered else INPUT
    operator = RankOperator(
        INPUT, partition, order, first, last, RANK if numbered else None, rank, columns, append_only=not updating
    )
    made = Epochs(operator, kind, replay=data.draw(st.booleans()))
    by = f"PARTITION BY {', '.join(column.name for column in partition)}" if partition else ""
    query = (
        f"SELECT k, v, s, d{', rank' if numbered else ''} FROM"
        f" (SELECT *, {rank}() OVER ({by} ORDER BY {sql(order)}) AS rank FROM held)"
        f" WHERE rank >= {first}" + (f" AND rank <= {last}" if last else "")
    )
    for epoch, changes in enumerate(history):
        made.run(changes, cuts=2)
        assert made.table == queried(query, held=(INPUT, held_after(history[: epoch + 1])))


def test_only_the_top_is_kept_of_an_input_that_only_grows() -> None:
    made = Epochs(RankOperator(INPUT, (K,), [key(V, True)], 1, 2, RANK, "ROW_NUMBER", (K, V, RANK), append_only=True))
    for epoch in range(5):
        made.run([(("a", float(value), None, 0), 1) for value in range(epoch, 10 * epoch + 5)])
    assert made.table == Counter([("a", 44.0, 1), ("a", 43.0, 2)])
    assert len(made.operator._rows.rows(["a"])[0]) == 2  # type: ignore[attr-defined]


def test_equal_rows_that_come_apart_are_taken_back_as_they_were_ranked() -> None:
    made = Epochs(RankOperator(INPUT, (K,), [key(V)], 1, 4, RANK, "ROW_NUMBER", (S, RANK), append_only=True))
    made.run([(("a", 2.0, "x", 0), 1), (("a", 2.0, "y", 0), 1)])
    made.run([(("a", 2.0, "x", 0), 1)])
    assert made.table == Counter([("x", 1), ("y", 2), ("x", 3)])
    made.run([(("a", 1.0, "z", 0), 1)])
    assert made.table == Counter([("z", 1), ("x", 2), ("y", 3), ("x", 4)])
    made.run([(("a", 1.0, "z", 0), 2)])
    assert made.table == Counter([("z", 1), ("z", 2), ("z", 3), ("x", 4)])


TIME = Column(5, "ts", parse_type("TIMESTAMP(3)"))


@pytest.mark.parametrize("kind", BACKENDS)
@pytest.mark.parametrize("append_only", [False, True])
def test_the_first_or_last_row_of_a_key(kind: str, append_only: bool) -> None:
    def keep(last: bool) -> Epochs:
        order = [key(TIME, descending=last)]
        operator = RankOperator((K, D, TIME), (K,), order, 1, 1, None, "ROW_NUMBER", (K, D), append_only=append_only)
        return Epochs(operator, kind, replay=True)

    first, latest = keep(last=False), keep(last=True)
    for made in (first, latest):
        made.run([(("a", 1, 5000), 1), (("a", 2, 5000), 1), (("b", 3, 0), 1)])
        made.run([(("a", 4, 5000), 1), (("b", 5, 0), 1)])
    assert first.table == Counter([("a", 1), ("b", 3)]) and first.emitted == []
    assert latest.table == Counter([("a", 4), ("b", 5)])
    assert sorted(latest.emitted) == [(("a", 2), -1), (("a", 4), 1), (("b", 3), -1), (("b", 5), 1)]


def test_rows_of_a_key_expire_together() -> None:
    made = Epochs(RankOperator(INPUT, (K,), [key(V)], 1, 2, None, "ROW_NUMBER", (K, V), ttl_ms=1000))
    made.run([(("a", 1.0, None, 0), 1)], now=0)
    made.run([(("a", 2.0, None, 0), 1)], now=900)
    made.run([(("a", 0.0, None, 0), 1)], now=1500)
    assert made.table == Counter([("a", 0.0), ("a", 1.0)])
    made.run([(("a", 7.0, None, 0), 1)], now=5000)
    assert made.emitted == [(("a", 7.0), 1)]


END = Column(6, "window_end", parse_type("TIMESTAMP(3)"))


@pytest.mark.parametrize("kind", BACKENDS)
@pytest.mark.parametrize("append_only", [False, True])
def test_the_top_of_a_window_is_emitted_once(kind: str, append_only: bool) -> None:
    options: dict[str, Any] = {"window_end": END, "append_only": append_only}
    operator = RankOperator(
        (K, D, END), (K, END), [key(D, True)], 1, 1, RANK, "ROW_NUMBER", (K, D, END, RANK), **options
    )
    made = Epochs(operator, kind, replay=True)
    made.run([(("a", 1, 10_000), 1), (("a", 3, 10_000), 1)], watermark=5)
    made.run([(("a", 2, 10_000), 1), (("a", 9, 20_000), 1)], watermark=8)
    assert made.emitted == [] and made.operator.next_event_timer() == 9
    made.run([], watermark=9)
    assert made.emitted == [(("a", 3, 10_000, 1), 1)]
    made.run([(("a", 7, 10_000), 1)])
    assert made.emitted == [] and made.late == 2  # the replay counts again
    made.end()
    assert made.emitted == [(("a", 9, 20_000, 1), 1)] and made.backend.number_of_entries() == 0
