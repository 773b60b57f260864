"""Declared types are checked where records leave an operator."""

from __future__ import annotations

from typing import Any

import pytest

from headwater.common.errors import TypeMismatchError
from headwater.common.typeinfo import Types
from headwater.common.types import Row
from headwater.datastream import CheckpointedFunction, KeyedProcessFunction, MapFunction, RuntimeContext
from headwater.operators.type_check import TypeCheckOperator
from headwater.state.descriptors import ListStateDescriptor, ValueStateDescriptor
from headwater.testing import OneInputOperatorHarness

SALE = Types.ROW_NAMED(["shop", "amount"], [Types.STRING(), Types.DOUBLE()])


def test_records_that_fit_pass_with_their_timestamps() -> None:
    harness = OneInputOperatorHarness(TypeCheckOperator(Types.STRING()))
    harness.process_elements(["a", "b"], [1, 2])
    assert harness.get_output_with_timestamps() == [("a", 1), ("b", 2)]


def test_what_is_close_enough_is_converted() -> None:
    harness = OneInputOperatorHarness(TypeCheckOperator(SALE))
    harness.process_element(("x", 1))
    (row,) = harness.get_output()
    assert isinstance(row, Row)
    assert row["amount"] == 1.0


def test_a_mismatch_names_operator_field_expected_and_found() -> None:
    harness = OneInputOperatorHarness(TypeCheckOperator(SALE, "parse"))
    with pytest.raises(TypeMismatchError) as caught:
        harness.process_element(("x", "abc"))
    text = str(caught.value)
    for part in ("'parse'", "epoch 1", "amount", "DOUBLE", "'abc'"):
        assert part in text, text


class Remember(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.last = runtime_context.get_state(ValueStateDescriptor("last", Types.LONG()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> None:
        self.last.update(value)


def test_what_a_function_stores_is_checked_at_the_end_of_the_epoch() -> None:
    harness = OneInputOperatorHarness(Remember(), key_selector=lambda value: str(value))
    harness.process_element(1)
    harness.snapshot()
    harness.process_element("two")
    with pytest.raises(TypeMismatchError) as caught:
        harness.snapshot()
    text = str(caught.value)
    assert text.startswith(f"operator '{harness.context.name}', epoch 2: state 'last' of key 'two' "), text
    assert "expected LONG, found str 'two'" in text


class Offsets(MapFunction, CheckpointedFunction):
    def initialize_state(self, context: Any) -> None:
        self.offsets = context.get_operator_list_state(ListStateDescriptor("offsets", Types.LONG()))

    def snapshot_state(self, context: Any) -> None:
        self.offsets.update([self.last])

    def map(self, value: Any) -> Any:
        self.last = value
        return value


def test_what_snapshot_state_writes_is_checked_in_the_same_epoch() -> None:
    harness = OneInputOperatorHarness(Offsets())
    harness.process_element(1)
    harness.snapshot()
    harness.process_element("two")
    with pytest.raises(TypeMismatchError, match=r"epoch 2: state 'offsets' does not fit .* found str 'two'"):
        harness.snapshot()
