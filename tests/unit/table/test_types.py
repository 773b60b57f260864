"""Types: their text and its parser, Arrow's and Spark's counterparts, `DataTypes`, type information."""

from __future__ import annotations

import pyarrow as pa
import pytest

from headwater.common.typeinfo import Types
from headwater.table.types import logical as t
from headwater.table.types.arrow import from_arrow, schema_to_arrow, to_arrow
from headwater.table.types.data_types import DataTypes
from headwater.table.types.spark import spark_type
from headwater.table.types.type_information import from_type_information, to_type_information
from headwater.table.types.type_text import parse_type

TEXTS = [
    "CHAR(3)",
    "VARCHAR(5) NOT NULL",
    "STRING",
    "BOOLEAN",
    "BINARY(2)",
    "VARBINARY(9)",
    "BYTES",
    "DECIMAL(38, 18)",
    "TINYINT",
    "SMALLINT",
    "INT",
    "BIGINT NOT NULL",
    "FLOAT",
    "DOUBLE",
    "DATE",
    "TIME(0)",
    "TIMESTAMP(3)",
    "TIMESTAMP(9)",
    "TIMESTAMP_LTZ(6)",
    "INTERVAL YEAR(2) TO MONTH",
    "INTERVAL DAY(2) TO SECOND(6)",
    "ARRAY<INT NOT NULL>",
    "MULTISET<STRING>",
    "MAP<STRING, ARRAY<DOUBLE>>",
    "ROW<`a` INT, `b c` ROW<`x` STRING NOT NULL> NOT NULL>",
    "NULL",
]


@pytest.mark.parametrize("text", TEXTS)
def test_a_type_is_read_from_what_it_prints(text: str) -> None:
    assert parse_type(text).sql() == text


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("integer", "INT"),
        ("double precision", "DOUBLE"),
        ("numeric(5)", "DECIMAL(5, 0)"),
        ("dec", "DECIMAL(10, 0)"),
        ("char", "CHAR(1)"),
        ("time", "TIME(0)"),
        ("timestamp", "TIMESTAMP(6)"),
        ("timestamp(3) with local time zone not null", "TIMESTAMP_LTZ(3) NOT NULL"),
        ("timestamp without time zone", "TIMESTAMP(6)"),
        ("int array", "ARRAY<INT>"),
        ("int not null array not null", "ARRAY<INT NOT NULL> NOT NULL"),
        ("row(a int, b string)", "ROW<`a` INT, `b` STRING>"),
        ("row<a int 'the key'>", "ROW<`a` INT 'the key'>"),
        ("interval day to second(3)", "INTERVAL DAY TO SECOND(3)"),
    ],
)
def test_other_spellings(text: str, meaning: str) -> None:
    assert parse_type(text).sql() == meaning


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("INTT", "found 'INTT' at 1, expected a type"),
        ("ARRAY<INT", "ends too early, expected '>'"),
        ("DECIMAL(39, 2)", "precision 39 is not in 1..38"),
        ("DECIMAL(5, 6)", "scale 6 is not in 0..5"),
        ("TIMESTAMP(10)", "precision 10 is not in 0..9"),
        ("INT INT", "found 'INT' at 5, expected the end"),
        ("MAP<INT>", "found '>' at 8, expected ','"),
        ("ROW<a>", "found '>' at 6, expected a type"),
        ("INT;", "unexpected character ';' at 4"),
        ("", "ends too early, expected a type"),
    ],
)
def test_malformed_text_says_where(text: str, error: str) -> None:
    with pytest.raises(ValueError, match=error.replace("(", r"\(")):
        parse_type(text)


def test_types_are_values() -> None:
    assert DataTypes.ROW([DataTypes.FIELD("a", DataTypes.INT())]) == parse_type("ROW<a INT>")
    assert DataTypes.INT(False) != DataTypes.INT()
    assert DataTypes.INT(False).same_kind(DataTypes.INT())
    assert hash(parse_type("ARRAY<INT>")) == hash(DataTypes.ARRAY(DataTypes.INT()))
    assert parse_type("INT").not_null().with_nullable(True) == parse_type("INT")
    with pytest.raises(ValueError, match="NULL cannot be NOT NULL"):
        t.NULL.not_null()


@pytest.mark.parametrize("text", [each for each in TEXTS if "INTERVAL" not in each and each != "NULL"])
def test_arrow_holds_every_type(text: str) -> None:
    kind = parse_type(text)
    array = pa.array([None], to_arrow(kind))
    assert array.null_count == 1
    back = from_arrow(array.type)
    assert to_arrow(back) == array.type or kind.root is t.TypeRoot.MULTISET


def test_arrow_schemas_come_back() -> None:
    row = parse_type("ROW<a INT NOT NULL, b STRING, c ARRAY<BIGINT>> NOT NULL")
    assert isinstance(row, t.RowType)
    assert tuple((each.name, from_arrow(each.type, each.nullable)) for each in schema_to_arrow(row)) == tuple(
        (field.name, field.type) for field in row.fields
    )


@pytest.mark.parametrize(
    ("arrow", "text"),
    [
        (pa.uint64(), "DECIMAL(20, 0)"),
        (pa.uint32(), "BIGINT"),
        (pa.large_string(), "STRING"),
        (pa.dictionary(pa.int32(), pa.string()), "STRING"),
        (pa.timestamp("ns"), "TIMESTAMP(9)"),
        (pa.timestamp("ms", "Europe/Berlin"), "TIMESTAMP_LTZ(3)"),
        (pa.binary(16), "BINARY(16)"),
        (pa.time64("us"), "TIME(6)"),
    ],
)
def test_types_of_foreign_columns(arrow: pa.DataType, text: str) -> None:
    assert from_arrow(arrow) == parse_type(text)


def test_an_arrow_type_without_counterpart_is_refused() -> None:
    with pytest.raises(TypeError, match="SQL has no type for Arrow's halffloat"):
        from_arrow(pa.float16())


@pytest.mark.parametrize(
    ("text", "spark"),
    [
        ("CHAR(3)", "STRING"),
        ("TIME(0)", "INT"),
        ("TIMESTAMP(3)", "TIMESTAMP_NTZ"),
        ("TIMESTAMP_LTZ(3)", "TIMESTAMP"),
        ("DECIMAL(5, 2)", "DECIMAL(5,2)"),
        ("MULTISET<INT>", "MAP<INT,INT>"),
        ("ROW<a INT, `b c` MAP<STRING, ARRAY<DOUBLE>>>", "STRUCT<`a`: INT, `b c`: MAP<STRING,ARRAY<DOUBLE>>>"),
    ],
)
def test_spark_text(text: str, spark: str) -> None:
    assert spark_type(parse_type(text)) == spark


@pytest.mark.parametrize(
    "text",
    [
        "STRING",
        "BOOLEAN",
        "BYTES",
        "TINYINT",
        "INT",
        "BIGINT",
        "DOUBLE",
        "DATE",
        "TIME(0)",
        "TIMESTAMP(3)",
        "ARRAY<INT>",
        "MAP<STRING, INT>",
        "ROW<a INT, b STRING>",
    ],
)
def test_types_of_streams_come_back(text: str) -> None:
    assert from_type_information(to_type_information(parse_type(text))) == parse_type(text)


def test_python_objects_are_raw() -> None:
    assert from_type_information(Types.PICKLED_BYTE_ARRAY()).root is t.TypeRoot.RAW
    with pytest.raises(TypeError, match="a DataStream has no type for INTERVAL"):
        to_type_information(parse_type("INTERVAL DAY TO SECOND"))
