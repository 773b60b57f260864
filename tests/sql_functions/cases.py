"""All calls that are recorded from Flink and computed by both engines."""

from __future__ import annotations

from decimal import Decimal

from tests.sql_functions.case import Case, as_type, case, days, lit, months, seconds, word

COMPARISON = [
    case("=", "bin", "bin"),
    case("<", "bin", "bin"),
    *(
        case(sign, one, other)
        for sign in ("=", "<>", "<", "<=", ">", ">=")
        for one, other in (("i", "j"), ("d", "e"), ("s", "u"), ("n", "m"), ("ts", "t2"), ("b", "c"))
    ),
    case("=", "i", "n"),
    case("<", "l", "d"),
    case("=", "ti", "l"),
    case("=", "s", lit("Hello World")),
    case("=", "ts", "z"),
    case("<", "dt", lit("2000-01-01")),
    case("=", "a", "a2"),
    case("=", "f", "d"),
    case("=", "w", "n"),
    *(case(word_, name) for word_ in ("IS NULL", "IS NOT NULL") for name in ("i", "s", "a", "mp", "r")),
    case("IS DISTINCT FROM", "i", "j"),
    case("IS NOT DISTINCT FROM", "i", "j"),
    case("IS DISTINCT FROM", "s", "u"),
    case("BETWEEN", "i", lit(0), lit(42)),
    case("NOT BETWEEN", "i", lit(0), lit(42)),
    case("BETWEEN SYMMETRIC", "i", lit(42), lit(0)),
    case("NOT BETWEEN SYMMETRIC", "i", lit(42), "j"),
    case("BETWEEN", "n", "m", lit(100)),
    case("IN", "i", lit(1), lit(42)),
    case("NOT IN", "i", lit(1), lit(42)),
    case("IN", "s", lit("abc"), lit("Hello World")),
    case("IN", "i", "j", lit(7)),
    case("LIKE", "s", lit("%o%")),
    case("LIKE", "s", lit("_ello%")),
    case("LIKE", "s", lit("")),
    case("NOT LIKE", "s", lit("%b%")),
    case("LIKE", "s", lit("a!_b"), lit("!")),
    case("LIKE", "s", "u"),
    case("LIKE", "s", lit("日_語")),
    case("SIMILAR TO", "s", lit("(a|b)%")),
    case("NOT SIMILAR TO", "s", lit("[a-z]+[0-9]+%")),
]

LOGIC = [
    case("AND", "b", "c"),
    case("OR", "b", "c"),
    case("NOT", "b"),
    *(case(f"IS {negation}{value}", "c") for negation in ("", "NOT ") for value in ("TRUE", "FALSE", "UNKNOWN")),
]

ARITHMETIC = [
    case("+", "tm", seconds(70)),
    *(
        case(sign, one, other)
        for sign in ("+", "-", "*", "/", "%")
        for one, other in (("i", "j"), ("l", "k"), ("n", "m"), ("ti", "si"))
        if not (sign in "/%" and one == "ti")
    ),
    *(case(sign, "d", "e") for sign in ("+", "-", "*", "/")),
    case("/", "d", "d"),
    case("/", "e", lit(0.0)),
    case("+", "i", "l"),
    case("+", "i", "n"),
    case("*", "l", "n"),
    case("/", "n", "j"),
    case("/", "w", "m"),
    case("+", "w", "w"),
    case("*", "w", "n"),
    case("*", "w", "w"),
    case("-", "w", "n"),
    case("%", "w", "m"),
    case("+", "f", "i"),
    case("*", "f", "e"),
    case("*", "n", "d"),
    case("+", "ts", days(1)),
    case("-", "ts", seconds(1)),
    case("+", seconds(90), "ts"),
    case("+", "ts", months(1)),
    case("-", "ts", months(13)),
    case("+", "dt", days(31)),
    case("-", "dt", days(1)),
    case("+", "dt", months(1)),
    case("-", "dt", months(1)),
    case("-", "tm", seconds(2)),
    case("+", "z", days(1)),
    case("-", "z", seconds(1)),
    case("+", "z", months(1)),
    case("-", "i"),
    case("-", "l"),
    case("-", "d"),
    case("-", "n"),
    case("-", "ti"),
    case("*", lit(Decimal("0.908")), "l"),
    case("MOD", "i", "j"),
    case("%", "l", "j"),
]

NUMBERS = [
    *(case("ABS", name) for name in ("i", "l", "d", "n", "w")),
    *(
        case(name, "e")
        for name in (
            "SQRT",
            "EXP",
            "LN",
            "LOG10",
            "LOG2",
            "SIN",
            "COS",
            "TAN",
            "COT",
            "ASIN",
            "ACOS",
            "ATAN",
            "SINH",
            "COSH",
            "TANH",
            "DEGREES",
            "RADIANS",
        )
    ),
    case("LN", "d"),
    case("LOG10", "d"),
    case("LOG2", "d"),
    case("SQRT", "d"),
    case("SQRT", "i"),
    case("EXP", "n"),
    case("POWER", "e", "d"),
    case("POWER", "i", lit(2)),
    case("LOG", "e"),
    case("LOG", lit(2), "e"),
    case("ATAN2", "d", "e"),
    case("PI"),
    case("E"),
    *(case("SIGN", name) for name in ("i", "d", "n")),
    *(
        case(name, value, lit(digits))
        for name in ("ROUND", "TRUNCATE")
        for value in ("n", "e")
        for digits in (0, 1, -1, 4)
    ),
    case("ROUND", "n"),
    case("ROUND", "e"),
    case("ROUND", "i", lit(-1)),
    case("ROUND", "l", lit(1)),
    case("ROUND", "n", "j"),
    case("TRUNCATE", "i", lit(-1)),
    *(case(name, value) for name in ("CEIL", "FLOOR") for value in ("i", "d", "n", "e")),
    case("HEX", "l"),
    case("HEX", "s"),
    case("UNHEX", "u"),
    case("UNHEX", lit("616263")),
    case("BIN", "i"),
    case("BIN", "l"),
]

STRINGS = [
    case("STARTSWITH", "bin", "bin"),
    case("DECODE", "bin", lit("UTF-8")),
    case("||", "s", "u"),
    case("CONCAT", "s", "u", lit("!")),
    case("CONCAT_WS", lit("-"), "s", "u"),
    case("CONCAT_WS", "u", "s", "s"),
    *(
        case(name, "s")
        for name in (
            "CHAR_LENGTH",
            "UPPER",
            "LOWER",
            "INITCAP",
            "REVERSE",
            "ASCII",
            "TO_BASE64",
            "IS_ALPHA",
            "IS_DIGIT",
            "LTRIM",
            "RTRIM",
            "BTRIM",
            "URL_ENCODE",
            "SHA1",
            "MD5",
            "SHA224",
            "SHA256",
            "SHA384",
            "SHA512",
            "JSON_QUOTE",
        )
    ),
    case("SHA2", "s", lit(256)),
    case("IS_DIGIT", "num"),
    case("IS_DECIMAL", "num"),
    case("FROM_BASE64", lit("w6TDtg==")),
    case("CHARACTER_LENGTH", "s"),
    case("SUBSTRING", "s", lit(2)),
    case("SUBSTRING", "s", lit(2), lit(3)),
    case("SUBSTRING", "s", "j"),
    case("SUBSTRING", "s", "j", lit(2)),
    case("SUBSTRING", "s", lit(0), lit(2)),
    case("SUBSTRING", "s", lit(-3), lit(2)),
    case("SUBSTR", "s", lit(2), "j"),
    case("LEFT", "s", "j"),
    case("RIGHT", "s", "j"),
    case("LEFT", "s", lit(2)),
    case("RIGHT", "s", lit(2)),
    case("POSITION", "u", "s"),
    case("LOCATE", "u", "s"),
    case("LOCATE", "u", "s", lit(6)),
    case("INSTR", "s", "u"),
    case("TRIM", word("BOTH"), lit(" "), "s"),
    case("TRIM", word("LEADING"), lit("aH"), "s"),
    case("TRIM", word("TRAILING"), lit("cd"), "s"),
    case("LTRIM", "s", "u"),
    case("RTRIM", "s", lit("cdb")),
    case("BTRIM", "s", lit(" a")),
    case("LPAD", "s", lit(7), lit("xy")),
    case("RPAD", "s", lit(7), lit("xy")),
    case("LPAD", "s", "j", lit("-")),
    case("RPAD", "s", lit(3), "u"),
    case("REPEAT", "s", "j"),
    case("REPEAT", "s", lit(2)),
    case("REPLACE", "s", lit("b"), lit("BB")),
    case("REPLACE", "s", "u", lit("_")),
    case("TRANSLATE", "s", lit("abc"), lit("xy")),
    case("TRANSLATE", "s", "u", lit("Z")),
    case("OVERLAY", "s", lit("##"), lit(2)),
    case("OVERLAY", "s", lit("##"), lit(2), lit(4)),
    case("OVERLAY", "s", lit("##"), "j", lit(1)),
    case("STARTSWITH", "s", "u"),
    case("ENDSWITH", "s", "u"),
    case("SPLIT_INDEX", "s", lit(","), lit(1)),
    case("SPLIT_INDEX", "s", lit(","), lit(2)),
    case("SPLIT_INDEX", "s", "u", lit(0)),
    case("SPLIT_INDEX", "s", lit(44), "j"),
    case("SPLIT_INDEX", "s", lit(","), lit(-1)),
    case("SPLIT_INDEX", "s", lit(" "), lit(0)),
    case("SPLIT", "s", lit(",")),
    case("SPLIT", "s", "u"),
    case("CHR", "j"),
    case("CHR", lit(8364)),
    case("ENCODE", "s", lit("UTF-8")),
    case("ENCODE", "s", lit("UTF-16LE")),
    case("URL_DECODE", "url"),
    *(
        case("PARSE_URL", "url", lit(part))
        for part in ("HOST", "PATH", "QUERY", "REF", "PROTOCOL", "AUTHORITY", "FILE", "USERINFO")
    ),
    case("PARSE_URL", "url", lit("QUERY"), lit("y")),
    case("STR_TO_MAP", lit("k1=v1,k2=v2")),
    case("STR_TO_MAP", "url", lit("&"), lit("=")),
    case("ELT", "j", "s", lit("two"), "u"),
    case("REGEXP", "s", lit("[a-c]+\\d")),
    case("REGEXP", "s", "u"),
    case("REGEXP", "s", lit("(")),
    case("REGEXP_REPLACE", "s", lit("[abc]"), lit("x")),
    case("REGEXP_REPLACE", "s", lit("(\\w)(\\w)"), lit("$2$1")),
    case("REGEXP_REPLACE", "s", lit("("), lit("x")),
    case("REGEXP_EXTRACT", "s", lit("([a-z])(\\d+)"), lit(2)),
    case("REGEXP_EXTRACT", "s", lit("o.*")),
    case("REGEXP_EXTRACT", "s", lit("(a)|(b)"), lit(2)),
    case("REGEXP_EXTRACT", "s", lit("a"), lit(5)),
    case("REGEXP_EXTRACT_ALL", "s", lit("([a-c])")),
    case("REGEXP_EXTRACT_ALL", "s", lit("[a-c]"), lit(0)),
    case("REGEXP_COUNT", "s", lit("[ab]")),
    case("REGEXP_INSTR", "s", lit("b")),
    case("REGEXP_SUBSTR", "s", lit("[o-z]+")),
    case("REGEXP_SUBSTR", "s", lit("ü")),
]

JSON = [
    case("JSON_VALUE", "js", lit("$.a")),
    case("JSON_VALUE", "js", lit("lax $.b[1]")),
    case(
        "JSON_VALUE",
        "js",
        lit("strict $.a"),
        as_type("STRING"),
        word("DEFAULT"),
        lit("none"),
        word("DEFAULT"),
        lit("bad"),
    ),
    case("JSON_VALUE", "js", lit("$.b")),
    case("JSON_VALUE", "js", lit("$[1]"), as_type("DOUBLE")),
    case("JSON_VALUE", "js", lit("$.a.b"), as_type("BOOLEAN")),
    case("JSON_VALUE", "js", lit("$.n")),
    case("JSON_QUERY", "js", lit("$.b")),
    case("JSON_QUERY", "js", lit("$.a"), word("CONDITIONAL ARRAY")),
    case("JSON_QUERY", "js", lit("$.b"), word("UNCONDITIONAL ARRAY")),
    case("JSON_QUERY", "js", lit("$"), word("WITHOUT ARRAY"), word("EMPTY ARRAY"), word("EMPTY OBJECT")),
    case("JSON_QUERY", "js", lit("$.b[*]")),
    case("JSON_EXISTS", "js", lit("$.a")),
    case("JSON_EXISTS", "js", lit("strict $.a"), word("TRUE")),
    case("JSON_EXISTS", "js", lit("$.b[2].c"), word("UNKNOWN")),
    case("JSON_EXISTS", "js", lit("$.n")),
    case("JSON_OBJECT", word("NULL"), lit("k"), "i", lit("s"), "s"),
    case("JSON_OBJECT", word("ABSENT"), lit("n"), "n", lit("b"), "b", lit("a"), "a"),
    case("JSON_ARRAY", word("NULL"), "i", "s", "d"),
    case("JSON_ARRAY", word("ABSENT"), "n", "c", "sa"),
    case("JSON_STRING", "s"),
    case("JSON_STRING", "i"),
    case("JSON_STRING", "n"),
    case("JSON_STRING", "a"),
    case("JSON_STRING", "mp"),
    case("JSON_STRING", "r"),
    case("JSON_STRING", "ts"),
    case("JSON_STRING", "b"),
    case("JSON_STRING", "e"),
    *(case("IS JSON", "js", word(kind)) for kind in ("VALUE", "SCALAR", "ARRAY", "OBJECT")),
    case("IS JSON", "js"),
    case("JSON_UNQUOTE", "js"),
]

UNITS = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND")
TEMPORAL = [
    *(
        case("EXTRACT", word(unit), "ts")
        for unit in (*UNITS, "DOY", "DOW", "ISODOW", "ISOYEAR", "DECADE", "CENTURY", "MILLENNIUM", "EPOCH")
    ),
    *(case("EXTRACT", word(unit), "dt") for unit in ("YEAR", "WEEK", "DOW", "ISOYEAR", "CENTURY", "EPOCH")),
    *(case("EXTRACT", word(unit), "tm") for unit in ("HOUR", "MINUTE", "SECOND")),
    *(case("EXTRACT", word(unit), "z") for unit in ("HOUR", "DAY", "YEAR", "EPOCH")),
    *(
        case(name, "ts")
        for name in (
            "YEAR",
            "QUARTER",
            "MONTH",
            "WEEK",
            "DAYOFYEAR",
            "DAYOFMONTH",
            "DAYOFWEEK",
            "HOUR",
            "MINUTE",
            "SECOND",
        )
    ),
    case("HOUR", "tm"),
    case("MONTH", "dt"),
    case("HOUR", "z"),
    *(case(name, "ts", word(unit)) for name in ("FLOOR", "CEIL") for unit in UNITS),
    *(
        case(name, "dt", word(unit))
        for name in ("FLOOR", "CEIL")
        for unit in ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY")
    ),
    *(case(name, "z", word(unit)) for name in ("FLOOR", "CEIL") for unit in ("DAY", "HOUR", "MONTH")),
    case("FLOOR", "tm", word("HOUR")),
    case("CEIL", "tm", word("MINUTE")),
    case("DATE_FORMAT", "ts", lit("yyyy-MM-dd HH:mm:ss.SSS")),
    case("DATE_FORMAT", "ts", lit("yyyyMMdd")),
    case("DATE_FORMAT", "ts", lit("EEE, d MMM yy hh:mm a")),
    case("DATE_FORMAT", "ts", lit("D 'day' H")),
    case("DATE_FORMAT", "z", lit("yyyy-MM-dd HH:mm")),
    case("DATE_FORMAT", "dts", lit("yyyy/MM/dd")),
    case("DATE_FORMAT", "ts", lit("MMMM EEEE Q k K")),
    case("TO_DATE", "dts"),
    case("TO_DATE", "dts", lit("yyyy-MM-dd HH:mm:ss")),
    case("TO_TIMESTAMP", "dts"),
    case("TO_TIMESTAMP", "dts", lit("yyyy-MM-dd")),
    case("TO_TIMESTAMP", lit("07/03/2020 4:05"), lit("dd/MM/yyyy H:mm")),
    case("TO_TIMESTAMP", lit("20200307 PM 04"), lit("yyyyMMdd a hh")),
    case("TO_TIMESTAMP_LTZ", "k", lit(0)),
    case("TO_TIMESTAMP_LTZ", "k", lit(3)),
    case("TO_TIMESTAMP_LTZ", "dts"),
    case("TO_TIMESTAMP_LTZ", lit("2021-03-14 02:30:00"), lit("yyyy-MM-dd HH:mm:ss"), lit("America/New_York")),
    case("TO_TIMESTAMP_LTZ", "e", lit(0)),
    case("FROM_UNIXTIME", "k"),
    case("FROM_UNIXTIME", "i"),
    case("FROM_UNIXTIME", "i", lit("yyyyMMdd HH")),
    case("UNIX_TIMESTAMP", lit("2021-03-14 02:30:00")),
    case("UNIX_TIMESTAMP", "dts"),
    case("UNIX_TIMESTAMP", lit("14.03.2021"), lit("dd.MM.yyyy")),
    case("CONVERT_TZ", "dts", lit("UTC"), lit("Asia/Tokyo")),
    *(case("TIMESTAMPADD", word(unit), "j", "ts") for unit in UNITS[:8]),
    *(case("TIMESTAMPADD", word(unit), "j", "dt") for unit in ("YEAR", "MONTH", "WEEK", "DAY", "HOUR")),
    case("TIMESTAMPADD", word("MONTH"), "j", "z"),
    case("TIMESTAMPADD", word("HOUR"), "j", "z"),
    *(case("TIMESTAMPDIFF", word(unit), "ts", "t2") for unit in UNITS[:8]),
    case("TIMESTAMPDIFF", word("DAY"), "dt", "t2"),
    case("TIMESTAMPDIFF", word("MONTH"), "dt", "dt"),
    case("TIMESTAMPDIFF", word("HOUR"), "z", "z"),
]

CONDITIONAL = [
    case("CASE", "b", "i", "c", "l", lit(None)),
    case("CASE", "b", "s", lit("no")),
    case("CASE", "b", "n", "i"),
    case("CASE", "c", "a", "a2"),
    case("IF", "b", "s", "u"),
    case("IF", "c", "i", "j"),
    case("COALESCE", "i", "j"),
    case("COALESCE", "s", "u", lit("none")),
    case("COALESCE", "n", "i"),
    case("COALESCE", "a", "a2"),
    case("IFNULL", "i", lit(0)),
    case("IFNULL", "s", "u"),
    case("NULLIF", "i", "j"),
    case("NULLIF", "s", lit("")),
    case("NULLIF", "i", lit(42)),
    *(
        case(name, one, other)
        for name in ("GREATEST", "LEAST")
        for one, other in (("i", "j"), ("s", "u"), ("n", "m"), ("ts", "t2"))
    ),
    case("GREATEST", "i", "l", "n"),
    case("TYPEOF", "n"),
    case("TYPEOF", "a"),
]

_TARGETS = (
    "BOOLEAN",
    "TINYINT",
    "INT",
    "BIGINT",
    "FLOAT",
    "DOUBLE",
    "DECIMAL(5, 1)",
    "DECIMAL(38, 10)",
    "STRING",
    "VARCHAR(3)",
    "CHAR(4)",
)
CASTS = [
    case("CAST", "bin", as_type("VARBINARY(2)")),
    case("CAST", "bin", as_type("STRING")),
    *(
        case("CAST", source, as_type(target))
        for source in ("i", "l", "si", "n", "w", "e", "f")
        for target in _TARGETS
        if not (source == "w" and target in ("TINYINT", "INT", "BIGINT"))
    ),
    *(case("CAST", "b", as_type(target)) for target in ("INT", "DOUBLE", "DECIMAL(5, 1)", "STRING")),
    *(
        case("TRY_CAST", source, as_type(target))
        for source in ("num", "s")
        for target in (*_TARGETS, "DATE", "TIME(0)", "TIMESTAMP(3)", "BYTES", "BINARY(3)")
    ),
    *(
        case("TRY_CAST", "dts", as_type(target))
        for target in ("DATE", "TIMESTAMP(3)", "TIMESTAMP(6)", "TIMESTAMP_LTZ(3)")
    ),
    case("CAST", "num", as_type("INT")),
    case("TRY_CAST", "d", as_type("INT")),
    case("TRY_CAST", "d", as_type("BIGINT")),
    case("CAST", "d", as_type("STRING")),
    *(
        case("CAST", "ts", as_type(target))
        for target in ("STRING", "DATE", "TIME(0)", "TIMESTAMP(0)", "TIMESTAMP(6)", "TIMESTAMP_LTZ(3)")
    ),
    *(
        case("CAST", "z", as_type(target))
        for target in ("STRING", "DATE", "TIME(0)", "TIMESTAMP(3)", "TIMESTAMP_LTZ(0)")
    ),
    *(case("CAST", "dt", as_type(target)) for target in ("STRING", "TIMESTAMP(3)", "TIMESTAMP_LTZ(3)")),
    *(case("CAST", "tm", as_type(target)) for target in ("STRING", "TIMESTAMP(3)")),
    *(case("CAST", name, as_type("STRING")) for name in ("a", "sa", "mp", "r")),
    case("CAST", "a", as_type("ARRAY<STRING>")),
    case("CAST", "a", as_type("ARRAY<BIGINT>")),
    case("CAST", "r", as_type("ROW<x BIGINT, y STRING>")),
    case("CAST", "mp", as_type("MAP<STRING, BIGINT>")),
]

COLLECTIONS = [
    case("ARRAY", "i", "j"),
    case("ARRAY", "i", "l"),
    case("MAP", lit("k"), "i", lit("l"), "j"),
    case("ROW", "i", "s"),
    case("ITEM", "a", lit(1)),
    case("ITEM", "a", lit(3)),
    case("ITEM", "mp", lit("a")),
    case("ITEM", "mp", "u"),
    case("FIELD", "r", word("x")),
    case("FIELD", "r", word("y")),
    *(case("CARDINALITY", name) for name in ("a", "mp")),
    case("ARRAY_CONTAINS", "a", lit(2)),
    case("ARRAY_CONTAINS", "a", "j"),
    case("ARRAY_APPEND", "a", "j"),
    case("ARRAY_PREPEND", "a", "j"),
    case("ARRAY_REMOVE", "a", lit(2)),
    case("ARRAY_REMOVE", "a", "j"),
    case("ARRAY_POSITION", "a", lit(2)),
    case("ARRAY_POSITION", "a", "j"),
    *(case(name, "a", "a2") for name in ("ARRAY_CONCAT", "ARRAY_EXCEPT", "ARRAY_INTERSECT", "ARRAY_UNION")),
    *(case(name, "a") for name in ("ARRAY_DISTINCT", "ARRAY_REVERSE", "ARRAY_SORT", "ARRAY_MAX", "ARRAY_MIN")),
    case("ARRAY_SLICE", "a", lit(2)),
    case("ARRAY_SLICE", "a", lit(-2), lit(-1)),
    case("ARRAY_SLICE", "a", lit(1), "j"),
    case("ARRAY_SORT", "a", lit(False)),
    case("ARRAY_SORT", "a", lit(True), lit(False)),
    case("ARRAY_JOIN", "sa", lit("-")),
    case("ARRAY_JOIN", "sa", lit("-"), lit("?")),
    *(case(name, "mp") for name in ("MAP_KEYS", "MAP_VALUES", "MAP_ENTRIES")),
    case("MAP_FROM_ARRAYS", "a", "a"),
    case("MAP_UNION", "mp", "mp"),
    case("ELEMENT", "sa"),
    case("ELEMENT", "a2"),
]

CASES: list[Case] = [
    *COMPARISON,
    *LOGIC,
    *ARITHMETIC,
    *NUMBERS,
    *STRINGS,
    *JSON,
    *TEMPORAL,
    *CONDITIONAL,
    *CASTS,
    *COLLECTIONS,
]

NOT_RECORDED = {
    "RAND",
    "RAND_INTEGER",
    "UUID",
    "CURRENT_DATE",
    "CURRENT_TIME",
    "LOCALTIME",
    "LOCALTIMESTAMP",
    "CURRENT_TIMESTAMP",
    "NOW",
    "CURRENT_ROW_TIMESTAMP",
    "PROCTIME",
    "CURRENT_WATERMARK",
    "SOURCE_WATERMARK",
}
"""They give another result each time: tests of their own check them."""
