from __future__ import annotations

import datetime
import decimal
from array import array
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.common.errors import TypeMismatchError
from headwater.common.time import Instant
from headwater.common.typeinfo import (
    ExternalTypeInfo,
    LocalTimeTypeInfo,
    TypeInformation,
    Types,
    compile_batch_checker,
    compile_checker,
)
from headwater.common.types import Row, RowKind

T = Types
PAYMENT = T.ROW_NAMED(["id", "amount"], [T.STRING(), T.DOUBLE()])
DECIMAL = decimal.Decimal("1.5")
DATE, CLOCK = datetime.date(2024, 2, 29), datetime.time(1, 2)
MOMENT = datetime.datetime(2024, 2, 29, 1, 2)

FITS: list[tuple[TypeInformation, Any]] = [
    (T.STRING(), "a"),
    (T.BOOLEAN(), True),
    (T.BYTE(), -128),
    (T.SHORT(), 32767),
    (T.INT(), -(2**31)),
    (T.LONG(), 2**63 - 1),
    (T.BIG_INT(), 2**200),
    (T.FLOAT(), 1.5),
    (T.DOUBLE(), float("inf")),
    (T.CHAR(), "c"),
    (T.BIG_DEC(), DECIMAL),
    (T.INSTANT(), Instant(1, 2)),
    (T.SQL_DATE(), DATE),
    (T.SQL_TIME(), CLOCK),
    (T.SQL_TIMESTAMP(), MOMENT),
    (LocalTimeTypeInfo(LocalTimeTypeInfo.TimeType.LOCAL_DATE), DATE),
    (LocalTimeTypeInfo(LocalTimeTypeInfo.TimeType.LOCAL_TIME), CLOCK),
    (LocalTimeTypeInfo(LocalTimeTypeInfo.TimeType.LOCAL_DATE_TIME), MOMENT),
    (T.PICKLED_BYTE_ARRAY(), Ellipsis),
    (T.PICKLED_BYTE_ARRAY(), None),
    (T.TUPLE([T.STRING(), T.INT()]), ("a", 1)),
    (T.ROW([T.STRING(), T.INT()]), Row(f0="a", f1=None)),
    (T.ROW([T.STRING(), T.INT()]), Row(f0="a", f1=1)),
    (PAYMENT, Row(id="a", amount=1.0)),
    (T.LIST(T.STRING()), ["a", None]),
    (T.LIST(T.INT()), []),
    (T.BASIC_ARRAY(T.STRING()), ["a", None]),
    (T.OBJECT_ARRAY(T.TUPLE([T.INT()])), [(1,), None]),
    (T.PRIMITIVE_ARRAY(T.INT()), [1, 2]),
    (T.PRIMITIVE_ARRAY(T.BYTE()), b"\x00\xff"),
    (T.MAP(T.STRING(), T.DOUBLE()), {"a": 1.0, "b": None}),
    (T.MAP(T.STRING(), T.LIST(T.INT())), {"a": [1]}),
    (T.MAP(T.STRING(), T.INT()), {}),
    (ExternalTypeInfo(T.STRING()), "a"),
]


@pytest.mark.parametrize(("type_info", "value"), FITS, ids=lambda x: repr(x)[:40])
def test_what_fits_comes_back_as_the_same_object(type_info: TypeInformation, value: Any) -> None:
    assert compile_checker(type_info)(value) is value
    checked = compile_batch_checker(type_info)([value, value])
    assert len(checked) == 2
    assert all(result is value for result in checked)


CONVERTED: list[tuple[TypeInformation, Any, Any]] = [
    (T.DOUBLE(), 3, 3.0),
    (T.FLOAT(), 3, 3.0),
    (T.BIG_DEC(), 3, decimal.Decimal(3)),
    (T.TUPLE([T.STRING(), T.DOUBLE()]), ("a", 1), ("a", 1.0)),
    (T.TUPLE([T.STRING(), T.INT()]), ["a", 1], ("a", 1)),
    (T.TUPLE([T.STRING(), T.INT()]), Row("a", 1), ("a", 1)),
    (T.ROW([T.STRING(), T.INT()]), ("a", 1), Row(f0="a", f1=1)),
    (T.ROW([T.STRING(), T.INT()]), ["a", 1], Row(f0="a", f1=1)),
    (T.ROW([T.STRING(), T.DOUBLE()]), Row(x="a", y=1), Row(f0="a", f1=1.0)),
    (PAYMENT, ("a", 1), Row(id="a", amount=1.0)),
    (PAYMENT, Row("a", 1.0), Row(id="a", amount=1.0)),
    (PAYMENT, Row(amount=1.0, id="a"), Row(id="a", amount=1.0)),
    (PAYMENT, {"id": "a", "amount": 2, "more": 1}, Row(id="a", amount=2.0)),
    (PAYMENT, {"id": "a"}, Row(id="a", amount=None)),
    (T.ROW([T.INT(), T.INT()]), {"f1": 2, "f0": 1}, Row(f0=1, f1=2)),
    (T.LIST(T.DOUBLE()), [1, 2.5], [1.0, 2.5]),
    (T.LIST(T.INT()), (1, 2), [1, 2]),
    (T.LIST(PAYMENT), [("a", 1)], [Row(id="a", amount=1.0)]),
    (T.PRIMITIVE_ARRAY(T.INT()), array("i", [1, 2]), [1, 2]),
    (T.MAP(T.STRING(), T.DOUBLE()), {"a": 1}, {"a": 1.0}),
]


@pytest.mark.parametrize(("type_info", "value", "expected"), CONVERTED, ids=lambda x: repr(x)[:40])
def test_what_is_close_enough_is_converted(type_info: TypeInformation, value: Any, expected: Any) -> None:
    before = repr(value)
    for result in (compile_checker(type_info)(value), compile_batch_checker(type_info)([value])[0]):
        assert result == expected
        assert repr(result) == repr(expected)
    assert repr(value) == before, "the argument was changed in place"


MISFITS: list[tuple[TypeInformation, Any, str]] = [
    (T.STRING(), 5, "expected STRING, found int 5"),
    (T.STRING(), None, "expected STRING, found None"),
    (T.BOOLEAN(), 1, "expected BOOLEAN, found int 1"),
    (T.INT(), True, "expected INT, found bool True"),
    (T.INT(), 2**31, "expected INT (-2147483648 to 2147483647), found int 2147483648"),
    (T.BYTE(), 128, "expected BYTE (-128 to 127), found int 128"),
    (T.LONG(), 1.0, "expected LONG, found float 1.0"),
    (T.DOUBLE(), "1", "expected DOUBLE, found str '1'"),
    (T.DOUBLE(), True, "expected DOUBLE, found bool True"),
    (T.DOUBLE(), 10**400, "the number is too large for a float"),
    (T.CHAR(), "ab", "expected CHAR (one character), found str 'ab'"),
    (T.BIG_DEC(), 1.5, "expected BIG_DEC, found float 1.5; make it with Decimal(str(x))"),
    (T.SQL_DATE(), MOMENT, "call .date() on it"),
    (T.SQL_TIMESTAMP(), DATE, "expected SQL_TIMESTAMP, found date"),
    (T.INSTANT(), 5, "expected INSTANT, found int 5"),
    (PAYMENT, ("a", "abc"), "field 1 ('amount'): expected DOUBLE, found str 'abc', in record ('a', 'abc')"),
    (PAYMENT, ("a",), "expected ROW of 2 fields (id, amount), found tuple ('a',); it has 1"),
    (PAYMENT, Row(id="a", sum=1.0), "expected ROW of 2 fields (id, amount), found Row"),
    (PAYMENT, 5, "expected ROW of 2 fields (id, amount), found int 5"),
    (T.TUPLE([T.INT(), T.INT()]), (1, None), "field 1: expected INT, found None, in record (1, None)"),
    (T.TUPLE([T.INT()]), (1, 2), "expected TUPLE of 1 fields, found tuple (1, 2); it has 2"),
    (T.TUPLE([T.INT()]), 1, "expected TUPLE of 1 fields, found int 1"),
    (T.LIST(T.INT()), [1, "x"], "element 1: expected INT, found str 'x'"),
    (T.LIST(T.INT()), "12", "expected LIST, found str '12'"),
    (T.PRIMITIVE_ARRAY(T.INT()), [None], "element 0: expected INT, found None"),
    (T.MAP(T.STRING(), T.INT()), {1: 1}, "key 1: expected STRING, found int 1"),
    (T.MAP(T.STRING(), T.INT()), {"a": "b"}, "value of key 'a': expected INT, found str 'b'"),
    (T.MAP(T.STRING(), T.INT()), [("a", 1)], "expected MAP, found list"),
    (
        T.ROW([T.LIST(T.TUPLE([T.INT()]))]),
        ([(1,), ("x",)],),
        "field 0, element 1, field 0: expected INT, found str 'x'",
    ),
]


@pytest.mark.parametrize(("type_info", "value", "message"), MISFITS, ids=lambda x: repr(x)[:40])
def test_what_does_not_fit_is_named(type_info: TypeInformation, value: Any, message: str) -> None:
    for check in (compile_checker(type_info), lambda v: compile_batch_checker(type_info)([v])):
        with pytest.raises(TypeMismatchError) as caught:
            check(value)
        assert message in str(caught.value)


def test_plain_objects_stand_for_named_rows() -> None:
    class Payment:
        def __init__(self) -> None:
            self.id, self.amount = "a", 2

    assert compile_checker(PAYMENT)(Payment()) == Row(id="a", amount=2.0)


def test_a_named_tuple_stays_one_if_nothing_changes() -> None:
    class Point(NamedTuple):
        x: int
        y: int

    point = Point(1, 2)
    assert compile_checker(T.TUPLE([T.INT(), T.INT()]))(point) is point
    assert compile_checker(T.MAP(T.STRING(), T.INT()))(OrderedDict(a=1)) == {"a": 1}


def test_the_kind_of_a_row_is_kept_when_it_is_converted() -> None:
    row = Row.of_kind(RowKind.DELETE, "a", 1)
    for result in (compile_checker(PAYMENT)(row), compile_batch_checker(PAYMENT)([row])[0]):
        assert result.get_row_kind() is RowKind.DELETE


def test_numpy_scalars_become_pythons() -> None:
    numpy = pytest.importorskip("numpy")
    assert type(compile_checker(T.INT())(numpy.int64(5))) is int
    assert type(compile_checker(T.DOUBLE())(numpy.float32(0.5))) is float
    assert compile_checker(T.BOOLEAN())(numpy.bool_(True)) is True
    assert compile_checker(T.LIST(T.INT()))(numpy.array([1, 2])) == [1, 2]
    with pytest.raises(TypeMismatchError):
        compile_checker(T.INT())(numpy.array([1, 2]))


def test_a_batch_that_fits_is_not_copied() -> None:
    batch = [("a", 1.0), ("b", 2.0)]
    assert compile_batch_checker(T.TUPLE([T.STRING(), T.DOUBLE()]))(batch) is batch


def test_one_bad_record_in_a_batch_is_the_one_that_is_named() -> None:
    batch: list[Any] = [("a", 1.0)] * 100 + [("bad", None, 3)] + [("a", 1.0)] * 100
    with pytest.raises(TypeMismatchError, match="'bad'"):
        compile_batch_checker(T.TUPLE([T.STRING(), T.DOUBLE()]))(batch)


values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(allow_nan=False), st.text(max_size=2)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.tuples(inner, inner),
        st.builds(Row, inner, inner),
        st.builds(lambda a, b: Row(id=a, amount=b), inner, inner),
        st.dictionaries(st.one_of(st.text(max_size=1), st.integers()), inner, max_size=2),
    ),
    max_leaves=6,
)
types = st.recursive(
    st.sampled_from([T.STRING(), T.INT(), T.LONG(), T.DOUBLE(), T.BOOLEAN(), T.CHAR(), T.PICKLED_BYTE_ARRAY()]),
    lambda inner: st.one_of(
        st.builds(T.LIST, inner),
        st.builds(lambda a, b: T.TUPLE([a, b]), inner, inner),
        st.builds(lambda a, b: T.ROW([a, b]), inner, inner),
        st.builds(lambda a, b: T.ROW_NAMED(["id", "amount"], [a, b]), inner, inner),
        st.builds(T.MAP, inner, inner),
    ),
    max_leaves=4,
)


def outcome(call: Callable[[], Any]) -> str:
    try:
        return repr(call())
    except TypeMismatchError as error:
        return f"error: {error}"


@given(types, st.lists(values, max_size=4))
def test_the_fast_way_and_the_careful_way_agree(type_info: TypeInformation, batch: list[Any]) -> None:
    """Same results, kinds of results and errors, whatever goes in; and a second check changes nothing."""
    one, many = compile_checker(type_info), compile_batch_checker(type_info)
    assert outcome(lambda: many(batch)) == outcome(lambda: [one(value) for value in batch])
    try:
        checked = many(batch)
    except TypeMismatchError:
        return
    assert repr(many(checked)) == repr(checked)
