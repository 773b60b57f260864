"""Keys that a program could change are copied, and the copy cannot be changed.

PyFlink takes lists, dicts, sets, bytearrays and Rows as keys, because it keeps keys as bytes. Here a key stays an
object: were it changed in place, its state would never be found again. So whoever takes a key from a key selector
freezes it. The rule: **the frozen copy equals what the selector returned**, and is all that a program sees of the key.

| selector returns | the key is |
|---|---|
| list, dict, Row | a list, dict, Row that refuses to be changed |
| set | frozenset |
| bytearray | bytes |
| tuple, NamedTuple | the same, with what is in it frozen |
| anything else | what was returned |
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from headwater.common.types import Row


def frozen(key: Any) -> Any:
    """`key` itself if nothing in it can be changed, an equal copy otherwise."""
    freeze = _FREEZERS.get(key.__class__)
    if freeze is not None:
        return freeze(key)
    return _frozen_tuple(key) if isinstance(key, tuple) else key


class FrozenKeyOf:
    """A key selector whose keys are frozen."""

    __slots__ = ("_key_of",)

    def __init__(self, key_of: Callable[[Any], Any]) -> None:
        self._key_of = key_of

    def __call__(self, value: Any) -> Any:
        return frozen(self._key_of(value))


def _refuse(self: Any, *_: Any, **__: Any) -> NoReturn:
    raise TypeError(f"{self!r} is a key, which cannot be changed; make a copy, as with list(key), and change that")


class FrozenList(list[Any]):
    """A list that is a key."""

    __slots__ = ()

    append = clear = extend = insert = pop = remove = reverse = sort = _refuse
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return frozen, (list(self),)


class FrozenDict(dict[Any, Any]):
    """A dict that is a key."""

    __slots__ = ()

    clear = pop = popitem = setdefault = update = _refuse
    __setitem__ = __delitem__ = __ior__ = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> tuple[Any, ...]:
        return frozen, (dict(self),)


class FrozenRow(Row):
    """A Row that is a key."""

    __slots__ = ()

    __setitem__ = set_field_names = set_row_kind = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        make, arguments = super().__reduce__()
        return frozen, (make(*arguments),)


def _frozen_row(key: Row) -> FrozenRow:
    row = FrozenRow(*map(frozen, key))
    row._fields, row._row_kind = key.get_field_names(), key.get_row_kind()
    return row


def _frozen_tuple(key: tuple[Any, ...]) -> tuple[Any, ...]:
    parts = [frozen(part) for part in key]
    if all(part is before for part, before in zip(parts, key, strict=True)):
        return key
    make: Callable[[Any], Any] = getattr(key, "_make", tuple)  # of a NamedTuple
    return make(parts)  # type: ignore[no-any-return]


_FREEZERS: dict[type, Callable[[Any], Any]] = {
    list: lambda key: FrozenList(map(frozen, key)),
    dict: lambda key: FrozenDict((name, frozen(value)) for name, value in key.items()),
    set: frozenset,
    bytearray: bytes,
    Row: _frozen_row,
}
