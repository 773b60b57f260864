from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.common.types import Row, RowKind

names = st.lists(st.sampled_from("abcdefgh"), unique=True, min_size=1)


def test_fields_by_position_name_and_attribute() -> None:
    row = Row(name="Ann", age=30)
    assert (row[0], row["name"], row.name) == ("Ann", "Ann", "Ann")
    assert list(row) == ["Ann", 30]
    assert row[0:1] == ["Ann"]
    assert len(row) == 2
    row["age"] = 31
    row[0] = "Bea"
    assert row.as_dict() == {"name": "Bea", "age": 31}


def test_a_row_of_names_makes_rows() -> None:
    person = Row("name", "age")
    assert person("Ann", 30) == Row(name="Ann", age=30)
    with pytest.raises(ValueError, match="makes rows of 2 fields, found 3"):
        person(1, 2, 3)


def test_what_is_not_there_is_said() -> None:
    row = Row(a=1)
    with pytest.raises(KeyError, match="no field 'b'"):
        row["b"]
    with pytest.raises(KeyError, match="no field 'a'"):
        Row(1)["a"]
    with pytest.raises(AttributeError, match="'b'"):
        _ = row.b
    with pytest.raises(AttributeError):
        row.a = 2
    with pytest.raises(IndexError):
        row[3]
    with pytest.raises(TypeError, match="no field names"):
        Row(1).as_dict()
    with pytest.raises(ValueError, match="not both"):
        Row(1, a=2)


def test_in_looks_at_names_if_there_are_any() -> None:
    assert "a" in Row(a=1)
    assert 1 not in Row(a=1)
    assert 1 in Row(1)


def test_rows_inside_rows_become_dicts_on_request() -> None:
    row = Row(k=1, inner=Row(x=2), many=[Row(y=3)], mapped={"m": Row(z=4)})
    assert row.as_dict()["inner"] == Row(x=2)
    assert row.as_dict(True) == {"k": 1, "inner": {"x": 2}, "many": [{"y": 3}], "mapped": {"m": {"z": 4}}}


def test_equality_knows_names_and_kinds() -> None:
    assert Row(1, 2) == Row(1, 2)
    assert Row(1, 2) != Row(2, 1)
    assert Row(a=1, b=2) == Row(b=2, a=1)
    assert Row(a=1) != Row(b=1)
    assert Row(a=1) != Row(1)
    assert Row(1) != (1,)
    assert Row.of_kind(RowKind.DELETE, 1) != Row(1)


def test_field_names_given_later_and_values_by_name() -> None:
    row = Row(1, 2)
    assert row.get_fields_by_names(["x"]) == [1, 2]
    row.set_field_names(["x", "y"])
    assert row.get_fields_by_names(["y", "x"]) == [2, 1]
    with pytest.raises(KeyError, match="z"):
        row.get_fields_by_names(["z"])


def test_reprs_are_pyflinks() -> None:
    assert repr(Row("a", 1)) == "<Row('a', 1)>"
    assert repr(Row(name="a", n=1)) == "Row(name='a', n=1)"
    assert [str(kind) for kind in RowKind] == ["+I", "-U", "+U", "-D"]


def test_rows_are_ordered_by_their_values() -> None:
    assert sorted([Row("b", 1), Row("a", 2), Row("a", 1)]) == [Row("a", 1), Row("a", 2), Row("b", 1)]
    assert Row(1) <= Row(1) < Row(2)
    with pytest.raises(TypeError):
        _ = Row(1) < (2,)


@given(st.lists(st.one_of(st.integers(), st.text(), st.none())), st.sampled_from(RowKind))
def test_pickles_and_copies_are_equal(values: list[Any], kind: RowKind) -> None:
    row = Row.of_kind(kind, *values)
    for other in (pickle.loads(pickle.dumps(row)), copy.copy(row), copy.deepcopy(row)):
        assert other == row
        assert other.get_row_kind() is kind
        assert other._values is not row._values


@given(names, st.randoms())
def test_equal_rows_hash_alike_whatever_the_order_of_their_names(fields: list[str], random: Any) -> None:
    shuffled = random.sample(fields, len(fields))
    one = Row(**{name: ord(name) for name in fields})
    two = Row(**{name: ord(name) for name in shuffled})
    assert one == two
    assert hash(one) == hash(two)
    assert pickle.loads(pickle.dumps(one)) == two


def test_pickles_are_compact() -> None:
    rows = [Row(index, "x") for index in range(1000)]
    assert len(pickle.dumps(rows, 5)) < 20 * len(rows)
