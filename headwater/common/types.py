"""Rows: records with positions, and names where they were given."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Any


class RowKind(Enum):
    """What a row says about a changing table."""

    INSERT = 0
    UPDATE_BEFORE = 1
    UPDATE_AFTER = 2
    DELETE = 3

    def __str__(self) -> str:
        return _SHORT_FORMS[self.value]


_SHORT_FORMS = ("+I", "-U", "+U", "-D")
_INSERT = RowKind.INSERT


class Row:
    """A record with a fixed number of fields, read by position, by name or as attributes.

    `Row("a", 1)` has positions only; `Row(name="a", count=1)` has names in the order given. As in PyFlink, a row of
    names makes a factory of rows: `Person = Row("name", "age"); Person("Ann", 30)`.

    Rows are mutable. The hash is that of the values, so a row that is a key must not change.
    """

    __slots__ = ("_fields", "_row_kind", "_values")

    _values: list[Any]
    _fields: list[str] | None  # None for a row without names
    _row_kind: RowKind

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if kwargs:
            if args:
                raise ValueError("a Row takes either positional values or named ones, not both")
            self._fields = list(kwargs)
            self._values = list(kwargs.values())
        else:
            self._fields = None
            self._values = list(args)
        self._row_kind = _INSERT

    @staticmethod
    def of_kind(row_kind: RowKind, *args: Any, **kwargs: Any) -> Row:
        row = Row(*args, **kwargs)
        row.set_row_kind(row_kind)
        return row

    def as_dict(self, recursive: bool = False) -> dict[str, Any]:
        """{name: value}; with `recursive` rows inside values, lists and dicts become dicts too."""
        fields = self._fields
        if fields is None:
            raise TypeError(f"{self!r} has no field names, so it cannot become a dict; call set_field_names first")
        if recursive:
            return dict(zip(fields, (_to_dicts(value) for value in self._values), strict=False))
        return dict(zip(fields, self._values, strict=False))

    def get_row_kind(self) -> RowKind:
        return self._row_kind

    def set_row_kind(self, row_kind: RowKind) -> None:
        self._row_kind = row_kind

    def set_field_names(self, field_names: Sequence[str]) -> None:
        self._fields = list(field_names)

    def get_field_names(self) -> list[str] | None:
        """The names, or None for a row without them."""
        fields = self._fields
        return None if fields is None else list(fields)

    def get_fields_by_names(self, names: Sequence[str]) -> list[Any]:
        """The values of `names` in that order; all values for a row without names."""
        fields = self._fields
        if fields is None or list(names) == fields:
            return self._values
        missing = [name for name in names if name not in fields]
        if missing:
            raise KeyError(f"fields {missing} are not among {fields}")
        return [self._values[fields.index(name)] for name in names]

    def _position(self, name: Any) -> int:
        fields = self._fields
        if fields is not None and name in fields:
            return fields.index(name)
        raise KeyError(f"no field {name!r} in {self!r}")

    def __call__(self, *args: Any) -> Row:
        """A new row whose field names are this row's values."""
        if len(args) > len(self._values):
            raise ValueError(f"{self!r} makes rows of {len(self._values)} fields, found {len(args)} values: {args!r}")
        return _make_row(self._values, args, self._row_kind)

    def __getitem__(self, item: Any) -> Any:
        return self._values[self._position(item) if type(item) is str else item]

    def __setitem__(self, key: Any, value: Any) -> None:
        self._values[self._position(key) if type(key) is str else key] = value

    def __getattr__(self, item: str) -> Any:
        # Names with an underscore are never fields: pickle and copy probe for them on half-made rows.
        if item[0] != "_":
            fields = self._fields
            if fields is not None and item in fields:
                return self._values[fields.index(item)]
        raise AttributeError(f"Row has no field or attribute {item!r}")

    def __contains__(self, item: Any) -> bool:
        fields = self._fields
        return item in (self._values if fields is None else fields)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __eq__(self, other: object) -> bool:
        """Compare kinds and values; with names, {name: value} in any order."""
        if not isinstance(other, Row):
            return NotImplemented
        if self._row_kind is not other._row_kind:
            return False
        mine, theirs = self._fields, other._fields
        if mine == theirs:
            return self._values == other._values
        if mine is None or theirs is None or sorted(mine) != sorted(theirs):
            return False
        return self.as_dict() == other.as_dict()

    def __hash__(self) -> int:
        # The order of names must not count: rows that differ only in it are equal.
        fields = self._fields
        if fields is None:
            return hash(tuple(self._values))
        return hash(frozenset(zip(fields, self._values, strict=False)))

    def __lt__(self, other: Row) -> bool:
        return self._values < other._values if isinstance(other, Row) else NotImplemented

    def __le__(self, other: Row) -> bool:
        return self._values <= other._values if isinstance(other, Row) else NotImplemented

    def __gt__(self, other: Row) -> bool:
        return self._values > other._values if isinstance(other, Row) else NotImplemented

    def __ge__(self, other: Row) -> bool:
        return self._values >= other._values if isinstance(other, Row) else NotImplemented

    def __reduce__(self) -> tuple[Any, ...]:
        fields = self._fields
        if self._row_kind is not _INSERT:
            return (_make_row, (fields, tuple(self._values), self._row_kind))
        if fields is None:
            return (Row, tuple(self._values))
        return (_make_row, (fields, tuple(self._values)))

    def __repr__(self) -> str:
        fields = self._fields
        if fields is None:
            return f"<Row({', '.join(map(repr, self._values))})>"
        pairs = zip(fields, self._values, strict=False)
        return f"Row({', '.join(f'{name}={value!r}' for name, value in pairs)})"


def named_row(values: list[Any], names: list[str], row_kind: RowKind = _INSERT) -> Row:
    """Return a row that keeps these lists. Rows may share `names`: they replace their names, never change them."""
    row = Row.__new__(Row)
    row._fields = names
    row._values = values
    row._row_kind = row_kind
    return row


def _make_row(fields: Sequence[str] | None, values: Sequence[Any], row_kind: RowKind = _INSERT) -> Row:
    """Module-level, so that pickles of rows stay short and readable by later versions."""
    row = Row.__new__(Row)
    row._fields = None if fields is None else list(fields)
    row._values = list(values)
    row._row_kind = row_kind
    return row


def _to_dicts(value: Any) -> Any:
    if isinstance(value, Row):
        return value.as_dict(True)
    if isinstance(value, list):
        return [_to_dicts(item) for item in value]
    if isinstance(value, dict):
        return {key: _to_dicts(item) for key, item in value.items()}
    return value
