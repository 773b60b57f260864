"""What a changed annotation of a field means for values that were stored under the old one.

Annotations are compared as text, because a snapshot can hold nothing else. `Optional[int]`, `int | None` and
`typing.Union[None, int]` are the same, and only the last part of a dotted name counts. There are three answers: values
stay, values are converted (int to float, also inside containers), or there is no safe way.
"""

from __future__ import annotations

import ast
import re
import types
import typing
from collections import deque
from collections.abc import Callable
from functools import lru_cache
from typing import Annotated, Any, Final, Literal, NamedTuple

Convert = Callable[[Any], Any]


class Change(NamedTuple):
    """What happens to values when an annotation changes."""

    possible: bool
    convert: Convert | None = None
    """Converts one value. None: values stay unchanged."""


SAME: Final = Change(True)
IMPOSSIBLE: Final = Change(False)


class _Type(NamedTuple):
    name: str
    arguments: tuple[_Type, ...] = ()


_UNION: Final = "|"
_SAYS_NOTHING: Final = frozenset({"", "Any", "object"})
_ALIASES: Final = {
    "List": "list", "Dict": "dict", "Tuple": "tuple", "Set": "set", "FrozenSet": "frozenset", "Deque": "deque",
    "Text": "str", "NoneType": "None",
}  # fmt: skip
_RUNTIME: Final[dict[str, type]] = {
    "int": int, "bool": bool, "list": list, "set": set, "frozenset": frozenset, "deque": deque, "tuple": tuple,
    "dict": dict,
}  # fmt: skip
_FITS: Final = {
    ("bool", "int"), ("int", "Number"), ("float", "Number"), ("int", "Real"), ("float", "Real"), ("dict", "Mapping"),
    ("dict", "MutableMapping"), ("set", "Set"), ("frozenset", "Set"), ("set", "AbstractSet"), ("datetime", "date"),
    *((name, wider) for name in ("list", "tuple", "deque") for wider in ("Sequence", "Collection", "Iterable")),
    ("list", "MutableSequence"),
}  # fmt: skip
"""(old, new): every value of type old is also one of type new."""


@lru_cache(maxsize=4096)
def annotation_change(old: str, new: str) -> Change:
    """Return what to do with values stored under annotation `old` now that it is `new`. Empty means any type."""
    return SAME if old == new else _change(_parse(old), _parse(new))


def annotation_text(annotation: Any) -> str:
    """Return an annotation as text. With `from __future__ import annotations` it already is its source text."""
    if isinstance(annotation, str):
        return annotation
    if annotation is None or annotation is types.NoneType:
        return "None"
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated:
        return annotation_text(arguments[0])
    if origin is Literal:
        return f"Literal[{', '.join(map(repr, arguments))}]"
    if origin is typing.Union or origin is types.UnionType:
        return " | ".join(map(annotation_text, arguments))
    if isinstance(annotation, typing.TypeVar):
        return "Any"
    if isinstance(annotation, typing.ForwardRef):
        return annotation.__forward_arg__
    if origin is not None and arguments and all(not isinstance(argument, list) for argument in arguments):
        inner = ", ".join("..." if argument is ... else annotation_text(argument) for argument in arguments)
        return f"{annotation_text(origin)}[{inner}]"
    if isinstance(annotation, type):
        return annotation.__qualname__
    return re.sub(r"^typing\.", "", str(annotation))


def _change(old: _Type, new: _Type) -> Change:
    if old == new or old.name in _SAYS_NOTHING or new.name in _SAYS_NOTHING:
        return SAME
    if old.name == _UNION:
        return _change_of_union(old, new)
    if new.name == _UNION:
        options = [_change(old, option) for option in new.arguments]
        return next((each for each in options if each == SAME), None) or next(
            (each for each in options if each.possible), IMPOSSIBLE
        )
    if old.name in ("int", "bool") and new.name == "float":
        return Change(True, _to_float)
    if (old.name, new.name) in _FITS:
        return _change_inside(old, new)
    if old.name != new.name:
        return IMPOSSIBLE
    return _change_inside(old, new)


def _change_inside(old: _Type, new: _Type) -> Change:
    """Compare two compatible containers by their arguments."""
    if not old.arguments or not new.arguments:
        return SAME
    if len(old.arguments) != len(new.arguments):
        return IMPOSSIBLE
    changes = [_change(before, after) for before, after in zip(old.arguments, new.arguments, strict=True)]
    if not all(change.possible for change in changes):
        return IMPOSSIBLE
    if all(change.convert is None for change in changes):
        return SAME
    converts = [change.convert or _keep for change in changes]
    runtime = _RUNTIME.get(old.name)
    if runtime is dict:
        return Change(True, _dict_converter(converts[1])) if changes[0] == SAME else IMPOSSIBLE
    if runtime is tuple and old.arguments[-1].name != "...":
        return Change(True, _tuple_converter(converts))
    return Change(True, _container_converter(runtime, converts[0])) if runtime is not None else IMPOSSIBLE


def _change_of_union(old: _Type, new: _Type) -> Change:
    by_class: dict[type, Convert] = {}
    for member in old.arguments:
        change = _change(member, new)
        if not change.possible:
            return IMPOSSIBLE
        if change.convert is not None:
            runtime = _RUNTIME[member.name]
            if runtime in by_class:  # list[int] | list[str]: a stored list does not show which one it is
                return IMPOSSIBLE
            by_class[runtime] = change.convert
    return Change(True, _union_converter(by_class)) if by_class else SAME


def _keep(value: Any) -> Any:
    return value


def _to_float(value: Any) -> Any:
    """Convert an exact int or bool. Others stay: a float already, or None against the annotation."""
    return float(value) if value.__class__ is int or value.__class__ is bool else value


def _dict_converter(convert: Convert) -> Convert:
    return lambda value: {k: convert(v) for k, v in value.items()} if value.__class__ is dict else value


def _tuple_converter(converts: list[Convert]) -> Convert:
    def convert(value: Any) -> Any:
        if value.__class__ is not tuple or len(value) != len(converts):
            return value
        return tuple(each(part) for each, part in zip(converts, value, strict=True))

    return convert


def _container_converter(runtime: Any, convert: Convert) -> Convert:
    return lambda value: runtime(map(convert, value)) if value.__class__ is runtime else value


def _union_converter(by_class: dict[type, Convert]) -> Convert:
    return lambda value: by_class.get(value.__class__, _keep)(value)


def _parse(text: str) -> _Type:
    try:
        return _from_ast(ast.parse(text.strip() or "Any", mode="eval").body)
    except (SyntaxError, ValueError):
        return _Type(text)


def _from_ast(node: ast.expr) -> _Type:
    if isinstance(node, ast.Constant):
        if isinstance(node.value, str):  # a forward reference
            return _parse(node.value)
        return _Type("..." if node.value is ... else str(node.value))
    if isinstance(node, ast.Name | ast.Attribute):
        name = node.id if isinstance(node, ast.Name) else node.attr
        return _Type(_ALIASES.get(name, name))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return _union([_from_ast(node.left), _from_ast(node.right)])
    if isinstance(node, ast.Subscript):
        return _from_subscript(node)
    return _Type(ast.unparse(node))


def _from_subscript(node: ast.Subscript) -> _Type:
    name = _from_ast(node.value).name
    items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    if name == "Literal":
        constants = (item.value if isinstance(item, ast.Constant) else item for item in items)
        return _union([_Type("None" if value is None else type(value).__name__) for value in constants])
    arguments = [_from_ast(item) for item in items]
    if name == "Optional":
        return _union([*arguments, _Type("None")])
    if name == "Union":
        return _union(arguments)
    if name in ("Annotated", "Final", "ClassVar"):
        return arguments[0]
    return _Type(name, tuple(arguments))


def _union(members: list[_Type]) -> _Type:
    flat = {part for member in members for part in (member.arguments if member.name == _UNION else (member,))}
    return next(iter(flat)) if len(flat) == 1 else _Type(_UNION, tuple(sorted(flat)))
