"""Functions that give another result each time, the registry, errors, and what a frame says."""

from __future__ import annotations

import datetime
import uuid

import pyarrow as pa
import pytest

from headwater.common.errors import ComputationError, FunctionTypeError
from headwater.table.functions.definition import Binding, BoundArgument, FunctionKind
from headwater.table.functions.frame import Frame
from headwater.table.functions.registry import all_functions, lookup, nearest
from headwater.table.types import logical as t
from headwater.table.types.arrow import to_arrow
from headwater.table.types.logical import LogicalType
from headwater.table.types.type_text import parse_type

MOMENT_MS = 1_636_262_999_500
"""2021-11-07 05:29:59.5 UTC: half past one in New York, half an hour before clocks go back."""
FRAME = Frame(rows=3, zone="America/New_York", now_ms=MOMENT_MS)


def bind(name: str, *arguments: BoundArgument) -> Binding:
    definition = lookup(name)
    assert definition is not None
    return definition.bind(arguments)


def of(text: str, literal: object = None) -> BoundArgument:
    return BoundArgument(parse_type(text), literal)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("CURRENT_DATE", "DATE NOT NULL", datetime.date(2021, 11, 7)),
        ("CURRENT_TIME", "TIME(0) NOT NULL", datetime.time(1, 29, 59)),
        ("LOCALTIME", "TIME(0) NOT NULL", datetime.time(1, 29, 59)),
        ("LOCALTIMESTAMP", "TIMESTAMP(3) NOT NULL", datetime.datetime(2021, 11, 7, 1, 29, 59, 500000)),
        ("CURRENT_TIMESTAMP", "TIMESTAMP_LTZ(3) NOT NULL", datetime.datetime(2021, 11, 7, 5, 29, 59, 500000)),
        ("NOW", "TIMESTAMP_LTZ(3) NOT NULL", datetime.datetime(2021, 11, 7, 5, 29, 59, 500000)),
        ("CURRENT_ROW_TIMESTAMP", "TIMESTAMP_LTZ(3) NOT NULL", datetime.datetime(2021, 11, 7, 5, 29, 59, 500000)),
        ("UNIX_TIMESTAMP", "BIGINT NOT NULL", MOMENT_MS // 1000),
    ],
)
def test_the_current_time_is_the_frames(name: str, text: str, value: object) -> None:
    binding = bind(name)
    assert binding.result_type == parse_type(text)
    assert not binding.function.deterministic
    found = binding.kernel([], FRAME).to_pylist()
    plain = [each.replace(tzinfo=None) if isinstance(each, datetime.datetime) else each for each in found]
    assert plain == [value] * 3


def test_in_batch_time_stands_still_from_the_querys_start() -> None:
    frame = Frame(rows=1, now_ms=MOMENT_MS, query_start_ms=0)
    assert bind("CURRENT_DATE").kernel([], frame).to_pylist() == [datetime.date(1970, 1, 1)]
    assert bind("PROCTIME").kernel([], frame).cast(pa.int64()).to_pylist() == [MOMENT_MS * 1000]


def test_proctime_is_a_time_attribute() -> None:
    assert bind("PROCTIME").result_type.sql() == "TIMESTAMP_LTZ(3) NOT NULL *PROCTIME*"


def test_the_watermark_is_the_frames() -> None:
    binding = bind("CURRENT_WATERMARK", of("TIMESTAMP(3)"))
    times = pa.array([datetime.datetime(2020, 1, 1)] * 3, pa.timestamp("us"))
    assert binding.kernel([times], FRAME).to_pylist() == [None] * 3
    frame = Frame(rows=3, watermark_ms=5000)
    assert binding.kernel([times], frame).to_pylist() == [datetime.datetime(1970, 1, 1, 0, 0, 5)] * 3


def test_random_numbers() -> None:
    values = bind("RAND").kernel([], Frame(rows=1000)).to_pylist()
    assert len(set(values)) == 1000 and all(0 <= each < 1 for each in values)
    # java.util.Random(42): 0.7275636800328681, 0.6832234717598454
    seeded = bind("RAND", of("INT NOT NULL", 42)).kernel([pa.scalar(42, pa.int32())], Frame(rows=2)).to_pylist()
    assert seeded == [0.7275636800328681, 0.6832234717598454]
    bounded = bind("RAND_INTEGER", of("INT NOT NULL", 10))
    assert {*bounded.kernel([pa.scalar(10, pa.int32())], Frame(rows=500)).to_pylist()} == set(range(10))
    # java.util.Random(42).nextInt(10): 0, 3, 8
    known = bind("RAND_INTEGER", of("INT NOT NULL", 42), of("INT NOT NULL", 10))
    literals = [pa.scalar(42, pa.int32()), pa.scalar(10, pa.int32())]
    assert known.kernel(literals, Frame(rows=3)).to_pylist() == [0, 3, 8]
    with pytest.raises(ComputationError, match="the bound 0 must be positive"):
        bounded.kernel([pa.scalar(0, pa.int32())], Frame(rows=1))


def test_uuids_differ() -> None:
    values = bind("UUID").kernel([], Frame(rows=100)).to_pylist()
    assert len({uuid.UUID(each) for each in values}) == 100


def test_a_sequence_of_random_numbers_goes_on_in_the_next_frame() -> None:
    binding = bind("RAND", of("INT NOT NULL", 42))
    seed = pa.scalar(42, pa.int32())
    first = binding.kernel([seed], Frame(rows=1)).to_pylist()
    second = binding.kernel([seed], Frame(rows=1)).to_pylist()
    assert first + second == [0.7275636800328681, 0.6832234717598454]


def test_names() -> None:
    assert lookup("upper") is lookup("UPPER") is lookup("ucase")
    assert lookup("is  not null") is not None
    assert lookup("NO_SUCH_FUNCTION") is None
    assert nearest("UPER") == "UPPER"
    assert nearest("DATEFORMAT") == "DATE_FORMAT"
    assert nearest("XQZ") is None


def test_every_function_is_described() -> None:
    for each in all_functions():
        assert each.syntax and each.description.endswith("."), each.name
        scalar = each.kind is FunctionKind.SCALAR
        assert (each.compute is not None) == scalar and (each.recipe is not None) != scalar, each.name


@pytest.mark.parametrize(
    ("name", "arguments", "error"),
    [
        ("+", [of("INT"), of("STRING")], "'\\+' does not take INT and STRING; use CAST"),
        ("%", [of("DOUBLE"), of("DOUBLE")], "% takes integers and decimals"),
        ("=", [of("STRING"), of("INT")], "STRING does not compare with INT; use CAST"),
        ("<", [of("ARRAY<INT>"), of("ARRAY<INT>")], "have no order"),
        ("CASE", [of("INT"), of("INT"), of("INT")], "a condition of CASE must be BOOLEAN, found INT"),
        ("COALESCE", [of("INT"), of("STRING")], "must have a type in common, found INT, STRING"),
        ("EXTRACT", [of("CHAR(4)", "HOUX"), of("DATE")], "'HOUX' is no field of a time; known are YEAR"),
        ("EXTRACT", [of("CHAR(4)", "YEAR"), of("TIME(0)")], r"TIME\(0\) has no YEAR"),
        ("FLOOR", [of("DATE"), of("CHAR(4)", "EON")], "not rounded to 'EON'"),
        ("CAST", [of("DATE"), BoundArgument(t.INT, t.INT)], "CAST from DATE to INT is not possible"),
        ("ITEM", [of("ARRAY<INT>"), of("INT NOT NULL", 0)], "starts at 1, found 0"),
        ("ITEM", [of("INT"), of("INT")], "INT has no elements"),
        ("FIELD", [of("ROW<a INT>"), of("CHAR(1)", "b")], "has no field 'b'; it has a"),
        ("SUM", [of("STRING")], "argument 1 must be of type number, found STRING"),
        ("TO_TIMESTAMP_LTZ", [of("BIGINT"), of("INT NOT NULL", 6)], "found precision 6"),
        ("TIMESTAMPADD", [of("CHAR(3)", "EON"), of("INT"), of("DATE")], "'EON' is no unit of time here"),
        ("CONCAT_WS", [of("STRING")], r"takes 2 or more arguments \(string, string, ...\), found 1"),
    ],
)
def test_errors_say_what_is_wrong(name: str, arguments: list[BoundArgument], error: str) -> None:
    with pytest.raises(FunctionTypeError, match=error):
        bind(name, *arguments)


@pytest.mark.parametrize(
    ("name", "types", "values", "error"),
    [
        ("/", ["INT", "INT"], [1, 0], "division by zero"),
        ("%", ["BIGINT", "BIGINT"], [1, 0], "division by zero"),
        ("/", ["DECIMAL(5, 2)", "DECIMAL(5, 2)"], ["1", "0"], "division by zero"),
        ("LIKE", ["STRING", "STRING", "STRING"], ["a", "b", "xy"], "must be one character"),
        ("DATE_FORMAT", ["TIMESTAMP(3)", "STRING"], [datetime.datetime(2020, 1, 1), "bbb"], "has the letter 'b'"),
        ("ENCODE", ["STRING", "STRING"], ["a", "X-8"], "unknown character set 'X-8'"),
        ("JSON_VALUE", ["STRING", "STRING"], ["{}", "a.b"], "expected it to begin with"),
        ("CONVERT_TZ", ["STRING", "STRING", "STRING"], ["2020-01-01 00:00:00", "UTC", "Mars/X"], "unknown time zone"),
        ("MAP_FROM_ARRAYS", ["ARRAY<INT>", "ARRAY<INT>"], [[1], []], "1 keys and 0 values"),
    ],
)
def test_values_that_cannot_be_computed(name: str, types: list[str], values: list[object], error: str) -> None:
    kinds: list[LogicalType] = [parse_type(each) for each in types]
    arrays = [pa.array([value]).cast(to_arrow(kind)) for value, kind in zip(values, kinds, strict=True)]
    with pytest.raises(ComputationError, match=error):
        bind(name, *map(BoundArgument, kinds)).kernel(arrays, Frame(rows=1))


def test_a_null_divided_by_zero_is_null() -> None:
    arrays = [pa.array([None], pa.int32()), pa.array([0], pa.int32())]
    assert bind("/", of("INT"), of("INT")).kernel(arrays, Frame(rows=1)).to_pylist() == [None]


def test_interval_arithmetic() -> None:
    day, two = of("INTERVAL DAY"), of("INT")
    arrays = [pa.array([datetime.timedelta(days=1), None], pa.duration("us")), pa.array([2, 2], pa.int32())]
    binding = bind("*", day, two)
    assert binding.kernel(arrays, Frame(rows=2)).to_pylist() == [datetime.timedelta(days=2), None]
    months = bind("-", of("INTERVAL YEAR TO MONTH"), of("INTERVAL MONTH"))
    numbers = [pa.array([14], pa.int32()), pa.array([2], pa.int32())]
    assert months.kernel(numbers, Frame(rows=1)).to_pylist() == [12]


def test_a_literal_stands_for_every_row() -> None:
    binding = bind("||", of("STRING"), of("CHAR(1)", "!"))
    found = binding.kernel([pa.array(["a", None]), pa.scalar("!")], Frame(rows=2))
    assert found.to_pylist() == ["a!", None]
    both = bind("+", of("INT NOT NULL", 1), of("INT NOT NULL", 2))
    assert both.kernel([pa.scalar(1, pa.int32()), pa.scalar(2, pa.int32())], Frame(rows=2)).to_pylist() == [3, 3]


@pytest.mark.parametrize(
    ("name", "arguments", "values"),
    [
        ("=", [of("BYTES"), of("BYTES")], [True, True, None]),
        ("STARTSWITH", [of("BYTES"), of("BYTES")], [True, True, None]),
        ("DECODE", [of("BYTES"), of("CHAR(5) NOT NULL", "UTF-8")], ["ä", "\ufffd", None]),
        (
            "CAST",
            [of("BYTES"), BoundArgument(parse_type("VARBINARY(1)"), parse_type("VARBINARY(1)"))],
            [b"\xc3", b"\xff", None],
        ),
        ("CAST", [of("BYTES"), BoundArgument(t.STRING, t.STRING)], ["ä", "\ufffd", None]),
    ],
)
def test_bytes(name: str, arguments: list[BoundArgument], values: list[object]) -> None:
    column = pa.array(["ä".encode(), b"\xff", None], pa.binary())
    scalars = {"DECODE": pa.scalar("UTF-8"), "CAST": pa.scalar(None)}
    assert bind(name, *arguments).kernel([column, scalars.get(name, column)], Frame(rows=3)).to_pylist() == values
