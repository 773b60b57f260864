"""The datagen connector as a Spark query: sequences and random values, a known number of rows."""

from __future__ import annotations

from headwater.common.errors import SqlError
from headwater.table.batch.literals import quoted
from headwater.table.batch.options import TableOptions
from headwater.table.types import logical as t
from headwater.table.types.logical import LogicalType, RowType
from headwater.table.types.spark import spark_type

_RANGES = {
    t.TypeRoot.TINYINT: (-128, 127),
    t.TypeRoot.SMALLINT: (-32_768, 32_767),
    t.TypeRoot.INTEGER: (-(2**31), 2**31 - 1),
    t.TypeRoot.BIGINT: (-(2**63), 2**63 - 1),
    t.TypeRoot.FLOAT: (-1e6, 1e6),
    t.TypeRoot.DOUBLE: (-1e6, 1e6),
}
_STRING_LENGTH = 100


def datagen_query(row_type: RowType, options: TableOptions) -> str:
    """The query. In batch mode the table needs an end: 'number-of-rows', or a sequence."""
    options.ignored("rows-per-second", "scan.parallelism")
    count = options.number("number-of-rows")
    lengths = [] if count is None else [int(count)]
    items = []
    for each in row_type.fields:
        text, length = _field(each.name, each.type, options)
        items.append(f"{text} AS {quoted(each.name)}")
        lengths += [] if length is None else [length]
    if not lengths:
        raise SqlError(f"{options.owner} has no end: set 'number-of-rows', or a field of kind 'sequence'")
    return f"SELECT {', '.join(items)} FROM RANGE({min(lengths)})"


def _field(name: str, type_: LogicalType, options: TableOptions) -> tuple[str, int | None]:
    kind = options.text(f"fields.{name}.kind", "random")
    if kind == "sequence":
        start = options.number(f"fields.{name}.start")
        end = options.number(f"fields.{name}.end")
        if start is None or end is None or end < start:
            raise SqlError(f"{options.owner}: a sequence needs 'fields.{name}.start' and 'fields.{name}.end' after it")
        return f"CAST(id + {int(start)}L AS {spark_type(type_)})", int(end) - int(start) + 1
    if kind != "random":
        raise SqlError(f"{options.owner}: 'fields.{name}.kind' is random or sequence, found '{kind}'")
    text = _random(name, type_, options)
    rate = options.number(f"fields.{name}.null-rate", 0) or 0
    if rate:
        text = f"CASE WHEN RAND() < {rate}D THEN NULL ELSE {text} END"
    return f"CAST({text} AS {spark_type(type_)})", None


def _random(name: str, type_: LogicalType, options: TableOptions) -> str:
    if type_.root in _RANGES or isinstance(type_, t.DecimalType):
        low, high = _RANGES.get(type_.root, (0, 1))
        if isinstance(type_, t.DecimalType):
            high = 10 ** (type_.precision - type_.scale) - 1
            low = -high
        least = options.number(f"fields.{name}.min", low)
        most = options.number(f"fields.{name}.max", high)
        if t.is_integer(type_):
            return f"(FLOOR(RAND() * (CAST('{most}' AS DOUBLE) - {least} + 1)) + {least})"
        return f"(RAND() * (CAST('{most}' AS DOUBLE) - ({least})) + ({least}))"
    if isinstance(type_, t.VarCharType | t.CharType):
        default = _STRING_LENGTH if type_.length == t.MAX_LENGTH else type_.length
        length = int(options.number(f"fields.{name}.length", default) or 0)
        pieces = ", ".join(["HEX(CAST(RAND() * 9223372036854775807D AS BIGINT))"] * (length // 10 + 1))
        return f"LOWER(LEFT(RPAD(CONCAT({pieces}), {length}, '0'), {length}))"
    if type_.root is t.TypeRoot.BOOLEAN:
        return "(RAND() < 0.5D)"
    if t.is_temporal(type_) and type_.root is not t.TypeRoot.TIME:
        past = options.text(f"fields.{name}.max-past")
        if past is not None:
            raise SqlError(f"{options.owner}: 'fields.{name}.max-past' is not there in batch mode")
        return "CURRENT_TIMESTAMP()"
    raise SqlError(f"{options.owner}: datagen makes no {type_.sql()} (column '{name}')")
