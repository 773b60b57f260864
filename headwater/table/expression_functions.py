"""The methods of `Expression` that call one function of SQL with the value first: the table of their names."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headwater.table.expression import Expression


class SqlProperty(property):
    """`col("a").abs`: a function of the value alone. Editors see that it gives an Expression."""

    if TYPE_CHECKING:

        def __get__(self, instance: Any, owner: type | None = None) -> Expression: ...  # type: ignore[override]


def _property(function: str) -> SqlProperty:
    return SqlProperty(lambda self: self._call(function), doc=f"{function}(value) of SQL.")


def _interval(unit: str) -> SqlProperty:
    return SqlProperty(lambda self: self._interval(unit), doc=f"A time: lit(10) of {unit}.")


def _method(function: str, *parameters: str) -> Callable[..., Expression]:
    """`parameters` as in a `def`. One that is None by default is left out of the call."""
    named = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD), *map(_parameter, parameters)]
    signature = inspect.Signature(named)

    def method(*given: Any, **by_name: Any) -> Expression:
        bound = signature.bind(*given, **by_name)
        bound.apply_defaults()
        value, *arguments = bound.args
        for parameter in reversed(named[1:]):
            if parameter.default is not None or not arguments or arguments[-1] is not None:
                break
            arguments.pop()
        made: Expression = value._call(function, *arguments)
        return made

    method.__signature__ = signature  # type: ignore[attr-defined]
    method.__doc__ = f"{function}({', '.join(['value', *parameters])}) of SQL."
    return method


def _parameter(text: str) -> inspect.Parameter:
    name, _, default = text.partition("=")
    if name.startswith("*"):
        return inspect.Parameter(name[1:], inspect.Parameter.VAR_POSITIONAL)
    value = inspect.Parameter.empty if not default else None if default == "None" else int(default)
    return inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=value)


class SqlFunctions:
    """What an Expression can do by name. `_property` takes nothing, `_method` the further arguments of the function."""

    # Aggregates
    sum = _property("SUM")
    count = _property("COUNT")
    avg = _property("AVG")
    min = _property("MIN")
    max = _property("MAX")
    stddev_pop = _property("STDDEV_POP")
    stddev_samp = _property("STDDEV_SAMP")
    var_pop = _property("VAR_POP")
    var_samp = _property("VAR_SAMP")
    collect = _property("COLLECT")
    first_value = _property("FIRST_VALUE")
    last_value = _property("LAST_VALUE")
    array_agg = _property("ARRAY_AGG")
    list_agg = _method("LISTAGG", "separator=None")

    # Numbers
    abs = _property("ABS")
    exp = _property("EXP")
    ln = _property("LN")
    log10 = _property("LOG10")
    log2 = _property("LOG2")
    sqrt = _property("SQRT")
    sign = _property("SIGN")
    sin = _property("SIN")
    cos = _property("COS")
    tan = _property("TAN")
    cot = _property("COT")
    asin = _property("ASIN")
    acos = _property("ACOS")
    atan = _property("ATAN")
    sinh = _property("SINH")
    cosh = _property("COSH")
    tanh = _property("TANH")
    degrees = _property("DEGREES")
    radians = _property("RADIANS")
    bin = _property("BIN")
    hex = _property("HEX")
    unhex = _property("UNHEX")
    power = _method("POWER", "exponent")
    round = _method("ROUND", "places=0")
    truncate = _method("TRUNCATE", "n=0")

    # Strings
    upper_case = _property("UPPER")
    lower_case = _property("LOWER")
    init_cap = _property("INITCAP")
    char_length = _property("CHAR_LENGTH")
    reverse = _property("REVERSE")
    ascii = _property("ASCII")
    chr = _property("CHR")
    from_base64 = _property("FROM_BASE64")
    to_base64 = _property("TO_BASE64")
    substring = _method("SUBSTRING", "begin_index", "length=None")
    substr = _method("SUBSTR", "begin_index", "length=None")
    left = _method("LEFT", "length")
    right = _method("RIGHT", "length")
    replace = _method("REPLACE", "search", "replacement")
    translate = _method("TRANSLATE", "from_str", "to_str")
    overlay = _method("OVERLAY", "new_string", "starting", "length=None")
    position = _method("POSITION", "haystack")
    instr = _method("INSTR", "s")
    locate = _method("LOCATE", "s", "pos=None")
    starts_with = _method("STARTSWITH", "start_expr")
    ends_with = _method("ENDSWITH", "end_expr")
    lpad = _method("LPAD", "length", "pad")
    rpad = _method("RPAD", "length", "pad")
    ltrim = _method("LTRIM", "trim_str=None")
    rtrim = _method("RTRIM", "trim_str=None")
    btrim = _method("BTRIM", "trim_str=None")
    repeat = _method("REPEAT", "n")
    elt = _method("ELT", "expr", "*exprs")
    split = _method("SPLIT", "delimiter")
    split_index = _method("SPLIT_INDEX", "separator", "index")
    str_to_map = _method("STR_TO_MAP", "list_delimiter=None", "key_value_delimiter=None")
    encode = _method("ENCODE", "charset")
    decode = _method("DECODE", "charset")
    url_encode = _method("URL_ENCODE")
    url_decode = _method("URL_DECODE")
    parse_url = _method("PARSE_URL", "part_to_extract", "key=None")
    regexp = _method("REGEXP", "regex")
    regexp_count = _method("REGEXP_COUNT", "regex")
    regexp_extract = _method("REGEXP_EXTRACT", "regex", "extract_index=None")
    regexp_extract_all = _method("REGEXP_EXTRACT_ALL", "regex", "extract_index=None")
    regexp_instr = _method("REGEXP_INSTR", "regex")
    regexp_replace = _method("REGEXP_REPLACE", "regex", "replacement")
    regexp_substr = _method("REGEXP_SUBSTR", "regex")
    json_quote = _method("JSON_QUOTE")
    json_unquote = _method("JSON_UNQUOTE")

    # Hashes
    md5 = _property("MD5")
    sha1 = _property("SHA1")
    sha224 = _property("SHA224")
    sha256 = _property("SHA256")
    sha384 = _property("SHA384")
    sha512 = _property("SHA512")
    sha2 = _method("SHA2", "hash_length")

    # Collections
    cardinality = _property("CARDINALITY")
    element = _property("ELEMENT")
    array_append = _method("ARRAY_APPEND", "addition")
    array_concat = _method("ARRAY_CONCAT", "*arrays")
    array_contains = _method("ARRAY_CONTAINS", "needle")
    array_distinct = _method("ARRAY_DISTINCT")
    array_except = _method("ARRAY_EXCEPT", "array")
    array_intersect = _method("ARRAY_INTERSECT", "array")
    array_join = _method("ARRAY_JOIN", "delimiter", "null_replacement=None")
    array_max = _method("ARRAY_MAX")
    array_min = _method("ARRAY_MIN")
    array_position = _method("ARRAY_POSITION", "needle")
    array_prepend = _method("ARRAY_PREPEND", "addition")
    array_remove = _method("ARRAY_REMOVE", "needle")
    array_reverse = _method("ARRAY_REVERSE")
    array_slice = _method("ARRAY_SLICE", "start_offset", "end_offset=None")
    array_sort = _method("ARRAY_SORT", "ascending_order=None", "null_first=None")
    array_union = _method("ARRAY_UNION", "array")
    map_entries = _property("MAP_ENTRIES")
    map_keys = _property("MAP_KEYS")
    map_union = _method("MAP_UNION", "*maps")
    map_values = _property("MAP_VALUES")

    # Lengths of time
    year = years = _interval("YEAR")
    quarter = quarters = _interval("QUARTER")
    month = months = _interval("MONTH")
    week = weeks = _interval("WEEK")
    day = days = _interval("DAY")
    hour = hours = _interval("HOUR")
    minute = minutes = _interval("MINUTE")
    second = seconds = _interval("SECOND")
