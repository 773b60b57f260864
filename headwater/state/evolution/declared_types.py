"""The declared type of a state as plain data, and what a change of it means for stored values.

Integers may become wider or floats; characters may become strings. Rows with names are matched by name: fields may be
reordered, removed, and added (with None, because rows have no defaults). Everything else needs a migration function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from headwater.common.errors import StateError, short_repr
from headwater.common.type_system.information import (
    BasicArrayTypeInfo,
    BasicType,
    BasicTypeInfo,
    ExternalTypeInfo,
    ListTypeInfo,
    MapTypeInfo,
    ObjectArrayTypeInfo,
    PickledBytesTypeInfo,
    PrimitiveArrayTypeInfo,
    RowTypeInfo,
    TupleTypeInfo,
    TypeInformation,
)
from headwater.common.types import Row

TypeForm = Any
"""None (any type), a name, or (constructor, ...): ("LIST", "LONG"), ("ROW", (("name", "STRING"), ...))."""

Convert = Callable[[Any], Any]

_INTEGERS: Final = ("BYTE", "SHORT", "INT", "LONG", "BIG_INT")
_FLOATS: Final = ("FLOAT", "DOUBLE")
_LISTS = (PrimitiveArrayTypeInfo, BasicArrayTypeInfo, ObjectArrayTypeInfo, ListTypeInfo)


class NoConversionError(Exception):
    """No safe conversion exists between two declared types. The text says where."""


def type_form(type_info: TypeInformation | None) -> TypeForm:
    """Return a declared type as plain data that can be persisted and compared."""
    if type_info is None or isinstance(type_info, PickledBytesTypeInfo):
        return None
    if isinstance(type_info, ExternalTypeInfo):
        return type_form(type_info.wrapped)
    if isinstance(type_info, BasicTypeInfo):
        return type_info.basic_type.name
    if isinstance(type_info, _LISTS):
        if isinstance(type_info, PrimitiveArrayTypeInfo) and type_info.element_type == BasicTypeInfo(BasicType.BYTE):
            return "BYTES"
        return ("LIST", type_form(type_info.element_type))
    if isinstance(type_info, MapTypeInfo):
        return ("MAP", type_form(type_info.key_type), type_form(type_info.value_type))
    if isinstance(type_info, TupleTypeInfo):
        return ("TUPLE", *map(type_form, type_info.get_field_types()))
    if isinstance(type_info, RowTypeInfo):
        names: list[str] | list[int] = type_info.get_field_names()
        if not type_info.has_names:
            names = list(range(len(names)))
        return ("ROW", tuple(zip(names, map(type_form, type_info.get_field_types()), strict=True)))
    return repr(type_info)


def type_text(form: TypeForm) -> str:
    """Return a type form as text for people: `ROW<name STRING, age INT>`."""
    if form is None:
        return "undeclared"
    if isinstance(form, str):
        return form
    name, *rest = form
    if name == "ROW":
        rest = [type_text(kind) if isinstance(field, int) else f"{field} {type_text(kind)}" for field, kind in rest[0]]
    else:
        rest = [type_text(part) for part in rest]
    return f"{name}<{', '.join(rest)}>"


def type_conversion(old: TypeForm, new: TypeForm, where: str = "the value") -> Convert | None:
    """Return a function from values of type `old` to values of type `new`; None if they need no conversion.

    Raises `NoConversionError` if there is no safe way; its text begins with `where`.
    """
    if old == new or old is None or new is None:
        return None
    if isinstance(old, str) and isinstance(new, str):
        return _basic_conversion(old, new, where)
    if isinstance(old, str) or isinstance(new, str) or old[0] != new[0]:
        raise _no_way(where, old, new)
    if old[0] == "ROW":
        return _row_conversion(old[1], new[1], where)
    if len(old) != len(new):
        raise _no_way(where, old, new)
    parts = [type_conversion(*pair, f"{where}, part {i}") for i, pair in enumerate(zip(old[1:], new[1:], strict=True))]
    if not any(parts):
        return None
    converts = [part or _keep for part in parts]
    if old[0] == "LIST":
        return lambda value: [converts[0](element) for element in value]
    if old[0] == "TUPLE":
        return lambda value: tuple(convert(part) for convert, part in zip(converts, value, strict=True))
    if parts[0] is not None:
        raise _no_way(f"{where}, the keys of its map", old[1], new[1])
    return lambda value: {key: converts[1](part) for key, part in value.items()}


def _basic_conversion(old: str, new: str, where: str) -> Convert | None:
    if old in _INTEGERS and new in _INTEGERS and _INTEGERS.index(old) <= _INTEGERS.index(new):
        return None
    if old in _INTEGERS and new in _FLOATS:
        return lambda value: value if value is None else float(value)
    if (old in _FLOATS and new in _FLOATS) or (old, new) == ("CHAR", "STRING"):  # both are Python's float
        return None
    raise _no_way(where, old, new)


def _row_conversion(old: tuple[Any, ...], new: tuple[Any, ...], where: str) -> Convert:
    before, after = dict(old), dict(new)
    by_position = any(isinstance(name, int) for name in (*before, *after))
    if by_position and list(before) != list(after):
        raise NoConversionError(
            f"{where} was declared as {type_text(('ROW', old))} and is {type_text(('ROW', new))} now; fields without "
            "names cannot be matched"
        )
    converts = {
        name: type_conversion(before[name], after[name], f"{where}, field '{name}',") or _keep
        for name in after
        if name in before
    }

    def convert(row: Any) -> Any:
        if row is None:
            return None
        if not isinstance(row, Row) or len(row) != len(old):
            raise StateError(f"expected a Row of {len(old)} fields, found {short_repr(row, 200)}")
        names = row.get_field_names()
        values = dict(zip(before if names is None or by_position else names, row, strict=True))
        if values.keys() != before.keys():
            raise StateError(f"expected a Row with the fields {list(before)}, found {short_repr(row, 200)}")
        made = Row(*(converts[name](values[name]) if name in converts else None for name in after))
        if names is not None:
            made.set_field_names(names if by_position else list(after))
        made.set_row_kind(row.get_row_kind())
        return made

    return convert


def _keep(value: Any) -> Any:
    return value


def _no_way(where: str, old: TypeForm, new: TypeForm) -> NoConversionError:
    return NoConversionError(f"{where} was declared as {type_text(old)} and is {type_text(new)} now")
