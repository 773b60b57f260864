"""WATERMARK FOR: the watermark follows the rows of its split, a failed epoch takes it back, an idle split lets go."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from headwater.common.errors import SqlError
from headwater.common.ids import MAX_WATERMARK
from headwater.operators.base import OperatorContext
from headwater.state.operator_backend import OperatorStateBackend
from headwater.table.plan.expressions import Column, ref
from headwater.table.stream.changes import Changes
from headwater.table.stream.operators.watermarks import WatermarkDelayOperator, WatermarkOperator
from headwater.table.types.logical import TimestampType

TS = Column(1, "ts", TimestampType(precision=3))


class Told:
    def __init__(self) -> None:
        self.events: list[Any] = []

    def emit(self, values: list[Any], timestamps: Any) -> None:
        self.events += [len(each) for each in values]

    def emit_watermark(self, watermark: int) -> None:
        self.events.append(("watermark", watermark))

    def emit_idle(self, idle: bool) -> None:
        self.events.append(("idle", idle))

    def taken(self) -> list[Any]:
        events, self.events = self.events, []
        return events


def rows(*millis: int | None) -> list[Changes]:
    values = [None if each is None else each * 1000 for each in millis]
    return [Changes(pa.RecordBatch.from_arrays([pa.array(values, pa.timestamp("us"))], names=["0"]))]


def made(idle_timeout_ms: int | None = None) -> tuple[WatermarkOperator, Told]:
    operator, out = WatermarkOperator([TS], TS, ref(TS), "t", idle_timeout_ms), Told()
    context = OperatorContext("w", "w", 0, 1, 128, operator_backend=OperatorStateBackend("w"))
    operator.setup(context, out)  # type: ignore[arg-type]
    operator.open()
    return operator, out


def test_the_watermark_is_the_greatest_value_and_never_goes_back() -> None:
    operator, out = made()
    operator.process_batch(rows(5, 9, 7), None)
    operator.process_batch(rows(8), None)
    assert out.taken() == [3, ("watermark", 9), 1]
    operator.process_watermark(100)  # not the source's
    operator.process_watermark(MAX_WATERMARK)
    assert out.taken() == [("watermark", MAX_WATERMARK)]


def test_a_split_without_rows_becomes_idle_and_comes_back() -> None:
    operator, out = made(idle_timeout_ms=1_000)
    operator.process_time(0)
    operator.process_batch(rows(5), None)
    operator.process_time(999)
    assert out.taken() == [1, ("watermark", 5)]
    operator.process_time(1_000)
    assert out.taken() == [("idle", True)]
    operator.process_batch(rows(6), None)
    assert out.taken() == [1, ("idle", False), ("watermark", 6)]


def test_a_row_without_a_time_is_an_error() -> None:
    operator, _ = made()
    with pytest.raises(SqlError, match="NULL in 'ts', its event time"):
        operator.process_batch(rows(1, None), None)


def test_a_delay_is_taken_from_the_watermark_but_not_from_the_end() -> None:
    operator, out = WatermarkDelayOperator([TS], 10), Told()
    operator.setup(OperatorContext("d", "d", 0, 1, 128), out)  # type: ignore[arg-type]
    operator.process_watermark(100)
    operator.process_watermark(MAX_WATERMARK)
    assert out.taken() == [("watermark", 90), ("watermark", MAX_WATERMARK)]
