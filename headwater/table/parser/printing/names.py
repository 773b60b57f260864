"""How names, strings and types are written."""

from __future__ import annotations

import re

from headwater.table.parser.ast.base import DataType
from headwater.table.parser.keywords import CALLABLE, RESERVED


def quoted(name: str) -> str:
    """A name in backticks."""
    return "`" + name.replace("`", "``") + "`"


def dotted(parts: tuple[str, ...]) -> str:
    return ".".join(quoted(part) for part in parts)


def text(value: str) -> str:
    """A string literal."""
    return "'" + value.replace("'", "''") + "'"


def function_name(parts: tuple[str, ...]) -> str:
    """A function's name; plain words stay as they are, because some have a grammar of their own."""
    if len(parts) == 1 and re.fullmatch(r"[A-Za-z_]\w*", parts[0]):
        word = parts[0].upper()
        if word in CALLABLE or word not in RESERVED:
            return parts[0]
    return dotted(parts)


def data_type(type_: DataType) -> str:
    if type_.name == "ROW":
        fields = []
        for name, argument, comment in zip(type_.field_names, type_.arguments, type_.field_comments, strict=True):
            fields.append(
                f"{quoted(name)} {data_type(argument)}" + (f" {text(comment)}" if comment is not None else "")
            )
        written = f"ROW<{', '.join(fields)}>"
    elif type_.name.startswith("INTERVAL"):
        written = _interval(type_)
    elif type_.arguments:
        written = f"{type_.name}<{', '.join(map(data_type, type_.arguments))}>"
    else:
        numbers = ", ".join(map(str, type_.parameters))
        written = f"{type_.name}({numbers})" if numbers else type_.name
    return written if type_.nullable else f"{written} NOT NULL"


def _interval(type_: DataType) -> str:
    _, unit, *rest = type_.name.split()
    numbers = list(type_.parameters)
    first = f"({numbers.pop(0)})" if numbers and (not rest or len(numbers) == 2) else ""
    last = f"({numbers.pop(0)})" if numbers else ""
    return f"INTERVAL {unit}{first}" + (f" TO {rest[1]}{last}" if rest else "")
