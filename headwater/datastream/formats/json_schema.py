"""A JSON Schema as a type: which Row fits the objects that it describes."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from headwater.common.errors import ConfigurationError
from headwater.common.type_system.information import ObjectArrayTypeInfo, RowTypeInfo, TypeInformation
from headwater.common.typeinfo import Types

_FORMATS: Final = {"date": Types.SQL_DATE, "time": Types.SQL_TIME, "date-time": Types.SQL_TIMESTAMP}
_SIMPLE: Final = {"boolean": Types.BOOLEAN, "number": Types.BIG_DEC, "integer": Types.BIG_INT, "string": Types.STRING}


def type_of_json_schema(text: str) -> RowTypeInfo:
    """Numbers are decimals, as in Flink; `format` date, time and date-time make dates and times of strings."""
    try:
        schema = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise ConfigurationError(f"json_schema is not JSON: {error}") from None
    found = _type_of(schema, "<root>") if isinstance(schema, dict) else None
    if not isinstance(found, RowTypeInfo):
        raise ConfigurationError("json_schema: the root is no object; expected 'type': 'object' with 'properties'")
    return found


def _type_of(schema: Any, where: str) -> TypeInformation:
    kinds = schema.get("type") if isinstance(schema, dict) else None
    found = [kind for kind in (kinds if isinstance(kinds, list) else [kinds]) if kind != "null"]
    kind = found[0] if len(found) == 1 else None
    if kind == "object":
        properties = schema.get("properties")
        if not isinstance(properties, dict) or not properties:
            raise ConfigurationError(f"json_schema: object {where} has no 'properties'")
        types = [_type_of(each, f"{where}.{name}") for name, each in properties.items()]
        return RowTypeInfo(types, list(properties))
    if kind == "array" and isinstance(schema.get("items"), dict):
        return ObjectArrayTypeInfo(_type_of(schema["items"], f"{where}[]"))
    if kind == "string" and schema.get("format") in _FORMATS:
        return _FORMATS[schema["format"]]()
    if kind in _SIMPLE:
        return _SIMPLE[kind]()
    raise ConfigurationError(
        f"json_schema: {where} is {schema!r}; expected a 'type' of object, array (with one schema as 'items'), string, "
        "number, integer or boolean; declare the type with type_info(Types.ROW_NAMED(...)) instead"
    )
