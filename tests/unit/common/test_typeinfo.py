from __future__ import annotations

import pickle

import pytest

from headwater.common.errors import TypeMismatchError
from headwater.common.typeinfo import RowTypeInfo, TypeInformation, Types

T = Types
ALL: list[TypeInformation] = [
    T.STRING(),
    T.BYTE(),
    T.BOOLEAN(),
    T.SHORT(),
    T.INT(),
    T.LONG(),
    T.FLOAT(),
    T.DOUBLE(),
    T.CHAR(),
    T.BIG_INT(),
    T.BIG_DEC(),
    T.INSTANT(),
    T.SQL_DATE(),
    T.SQL_TIME(),
    T.SQL_TIMESTAMP(),
    T.PICKLED_BYTE_ARRAY(),
    T.ROW([T.INT()]),
    T.ROW_NAMED(["a"], [T.STRING()]),
    T.TUPLE([T.INT()]),
    T.PRIMITIVE_ARRAY(T.INT()),
    T.BASIC_ARRAY(T.INT()),
    T.OBJECT_ARRAY(T.INT()),
    T.LIST(T.INT()),
    T.MAP(T.INT(), T.STRING()),
]


def test_types_are_values_and_all_differ() -> None:
    assert len(set(ALL)) == len(ALL)
    for type_info in ALL:
        assert pickle.loads(pickle.dumps(type_info)) == type_info


def test_reprs_are_pyflinks() -> None:
    assert repr(T.INT()) == "Integer"
    assert repr(T.ROW_NAMED(["a", "b"], [T.STRING(), T.LONG()])) == "RowTypeInfo(a: String, b: Long)"
    assert repr(T.TUPLE([T.STRING(), T.LONG()])) == "TupleTypeInfo(String, Long)"
    assert repr(T.MAP(T.STRING(), T.LIST(T.INT()))) == "MapTypeInfo<String, ListTypeInfo<Integer>>"
    assert repr(T.PICKLED_BYTE_ARRAY()) == "PickledByteArrayTypeInfo"


def test_field_names_of_rows() -> None:
    unnamed, named = T.ROW([T.INT(), T.INT()]), T.ROW_NAMED(["x", "y"], [T.INT(), T.INT()])
    assert unnamed.get_field_names() == ["f0", "f1"]
    assert named.get_field_names() == ["x", "y"]
    assert unnamed == named, "names are labels, as in PyFlink"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: T.ROW(None), "ROW: expected a list of types, found None"),
        (lambda: T.ROW([T.INT]), "field 0.*did you forget the parentheses"),
        (lambda: T.TUPLE(T.INT()), "expected a list of types"),
        (lambda: T.ROW_NAMED(["a"], [T.INT(), T.INT()]), "1 names for 2 types"),
        (lambda: T.ROW_NAMED(["a", "a"], [T.INT(), T.INT()]), "names must differ"),
        (lambda: T.LIST("int"), "LIST: expected a TypeInformation"),
        (lambda: T.PRIMITIVE_ARRAY(T.STRING()), "PRIMITIVE_ARRAY: elements must be one of BOOLEAN"),
        (lambda: T.BASIC_ARRAY(RowTypeInfo([])), "BASIC_ARRAY: elements"),
    ],
)
def test_a_wrong_declaration_is_refused_where_it_is_made(make: object, message: str) -> None:
    with pytest.raises(TypeMismatchError, match=message):
        make()  # type: ignore[operator]
