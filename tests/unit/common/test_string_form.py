from __future__ import annotations

import datetime
import decimal
from enum import IntEnum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.common.string_form import string_form_for, to_flink_string, to_python_string
from headwater.common.time import Instant
from headwater.common.typeinfo import Types
from headwater.common.types import Row, RowKind


@pytest.mark.parametrize(
    ("value", "text"),
    [
        # What PyFlink 2.3.0 prints for streams of these types.
        ("abc", "abc"),
        (("a", ("b", 1)), "(a,(b,1))"),
        (("a", Row("b", 1), [1, 2], {"k": 1.5}), "(a,+I[b, 1],[1, 2],{k=1.5})"),
        (["a", "b"], "[a, b]"),
        ({"a": 1, "b": 2}, "{a=1, b=2}"),
        (True, "true"),
        (1.0, "1.0"),
        (1e20, "1.0E20"),
        (1.5e-7, "1.5E-7"),
        (123456789.125, "1.23456789125E8"),
        (float("inf"), "Infinity"),
        (float("nan"), "NaN"),
        (0.001, "0.001"),
        (0.0001, "1.0E-4"),
        (12345678.0, "1.2345678E7"),
        (1e7, "1.0E7"),
        (decimal.Decimal("1.50"), "1.50"),
        (decimal.Decimal("1E+3"), "1E+3"),
        (datetime.date(2020, 1, 2), "2020-01-02"),
        (datetime.time(1, 2, 3, 400_000), "01:02:03"),
        (datetime.datetime(2020, 1, 2, 3, 4, 5, 678_000), "2020-01-02 03:04:05.678"),
        (datetime.datetime(2020, 1, 2, 3, 4, 5), "2020-01-02 03:04:05.0"),
        (Instant.of_epoch_milli(1500), "1970-01-01T00:00:01.500Z"),
        # The rest of Java's spelling.
        (Instant.of_epoch_milli(0), "1970-01-01T00:00:00Z"),
        (-1e-10, "-1.0E-10"),
        (-0.0, "-0.0"),
        (999999.5, "999999.5"),
        ((None, False), "(null,false)"),
        (Row("a", None, True), "+I[a, null, true]"),
        (Row(name="a", n=1), "+I[a, 1]"),
        (Row.of_kind(RowKind.UPDATE_BEFORE, 1), "-U[1]"),
        (b"\x01\xff", "[1, -1]"),
        ((), "()"),
    ],
)
def test_typed_records_look_as_java_shows_them(value: Any, text: str) -> None:
    assert to_flink_string(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("abc", "abc"),
        (("a", 1), "('a', 1)"),
        ([1, "a", None], "[1, 'a', None]"),
        ({"a": 1}, "{'a': 1}"),
        (True, "True"),
        (1e20, "1e+20"),
        (Row("a", 1), "+I[a, 1]"),
    ],
)
def test_untyped_records_look_as_python_shows_them(value: Any, text: str) -> None:
    assert to_python_string(value) == text


def test_the_declared_type_decides() -> None:
    assert string_form_for(None)(("a", 1)) == "('a', 1)"
    assert string_form_for(Types.PICKLED_BYTE_ARRAY())(("a", 1)) == "('a', 1)"
    assert string_form_for(Types.TUPLE([Types.STRING(), Types.INT()]))(("a", 1)) == "(a,1)"


def test_subclasses_look_like_their_base() -> None:
    class Level(IntEnum):
        LOW = 1

    class Pair(tuple[int, int]):
        pass

    assert to_flink_string(Pair((1, 2))) == "(1,2)"
    assert to_flink_string(Level.LOW) == "1"


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_the_text_of_a_float_reads_back(number: float) -> None:
    text = to_flink_string(number)
    assert float(text) == number
    mantissa, _, exponent = text.partition("E")
    assert "." in mantissa
    assert bool(exponent) == (number != 0 and not 1e-3 <= abs(number) < 1e7)
