"""Casts, common types and arithmetic of every pair of types, against what real Flink said (recorded)."""

from __future__ import annotations

import pytest

from headwater.common.errors import FunctionTypeError
from headwater.table.functions.definition import BoundArgument
from headwater.table.functions.registry import lookup
from headwater.table.types.casts import can_cast, common_type, implicit_cast
from headwater.table.types.logical import TypeRoot, is_binary, is_interval, is_numeric, is_string, is_temporal
from headwater.table.types.type_text import parse_type
from tests.sql_functions import type_pairs

RECORDED = type_pairs.read()
ZONED = (TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP_LTZ)


def pairs(name: str) -> list[tuple[str, str]]:
    return [(one, other) for kind, one, other in RECORDED if kind == name]


def flink_fails_later(one: str, other: str) -> bool:
    """Flink's validator lets these pass, and its planner refuses them."""
    source, target = parse_type(one), parse_type(other)
    if is_string(source):
        return is_interval(target) or target.root is TypeRoot.ARRAY
    if is_binary(source):
        return is_temporal(target)
    return (is_numeric(source) and target.root in ZONED) or (source.root in ZONED and is_numeric(target))


@pytest.mark.parametrize(("one", "other"), pairs("CAST"))
def test_casts_are_flinks(one: str, other: str) -> None:
    if flink_fails_later(one, other):
        assert not can_cast(parse_type(one), parse_type(other)) or is_string(parse_type(other))
        return
    assert can_cast(parse_type(one), parse_type(other)) == (RECORDED["CAST", one, other] is not None)


@pytest.mark.parametrize(("one", "other"), pairs("COALESCE"))
def test_common_types_are_flinks(one: str, other: str) -> None:
    found = common_type([parse_type(one), parse_type(other)])
    recorded = RECORDED["COALESCE", one, other]
    if found is None:
        # Flink takes a date for a timestamp and an integer for an interval there, and loses the rest of the value.
        roots = {parse_type(each).root for each in (one, other)}
        lossy = {TypeRoot.DATE, TypeRoot.TIME, TypeRoot.INTERVAL_DAY_TIME, TypeRoot.INTERVAL_YEAR_MONTH}
        assert recorded is None or roots & lossy
        return
    assert recorded is not None
    if {"FLOAT", "DECIMAL"} == {one.split("(")[0], other.split("(")[0]}:
        assert found == parse_type("DOUBLE")  # Flink: FLOAT or DOUBLE, as the order is
        return
    if is_interval(found):
        return
    assert found == parse_type(recorded)


@pytest.mark.parametrize("sign", ["+", "-", "*", "/", "%"])
def test_arithmetic_is_flinks(sign: str) -> None:
    definition = lookup(sign)
    assert definition is not None
    wrong = []
    for one, other in pairs(sign):
        recorded = RECORDED[sign, one, other]
        try:
            found = definition.bind([BoundArgument(parse_type(one)), BoundArgument(parse_type(other))]).result_type
        except FunctionTypeError:
            if recorded is not None:
                wrong.append((one, other, recorded, "refused"))
            continue
        if recorded is None or not (found == parse_type(recorded) or is_interval(found)):
            wrong.append((one, other, str(recorded), found.sql()))
    assert wrong == []


def test_an_implicit_cast_never_drops_nulls() -> None:
    assert implicit_cast(parse_type("INT NOT NULL"), parse_type("BIGINT"))
    assert not implicit_cast(parse_type("INT"), parse_type("BIGINT NOT NULL"))
    assert not implicit_cast(parse_type("BIGINT"), parse_type("INT"))
    assert implicit_cast(parse_type("NULL"), parse_type("INT"))
    assert not implicit_cast(parse_type("NULL"), parse_type("INT NOT NULL"))


def test_nulls_alone_have_no_type() -> None:
    assert common_type([parse_type("NULL"), parse_type("NULL")]) == parse_type("NULL")
    assert common_type([parse_type("NULL"), parse_type("INT NOT NULL")]) == parse_type("INT")
    assert common_type([]) is None
