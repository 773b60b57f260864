"""How the columns of entries are stored: lists, or smaller forms of them. No form names a class.

A column is one of: a list; `([...], ...)`, one column for each place of tuples of one width; `("<i8", bytes)`, numbers
of that dtype; `("<i8", bytes, bytes)`, the same with a byte for each that is 0 where there is None; `("*", value,
count)`, one value again and again.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import numpy

Packed = list[Any] | tuple[Any, ...]

_WORTH_PACKING: Final = 8
_REPEATED: Final = "*"


def packed(column: Any) -> Any:
    """Turn a list of equally long tuples into a tuple of columns, `([first elements], ...)`. Others stay unchanged."""
    if column.__class__ is not list or len(column) < _WORTH_PACKING or set(map(type, column)) != {tuple}:
        return column
    if len(set(map(len, column))) != 1 or not column[0]:
        return column
    return transposed(column, len(column[0]))


def transposed(column: list[Any], width: int) -> Any:
    return tuple([list(map(itemgetter(place), column)) for place in range(width)]) if column else column


def packed_array(values: numpy.ndarray, valid: numpy.ndarray | None = None) -> Packed:
    """Numbers, in as few bytes as they need. Where `valid` is False there is None."""
    kind = _narrowest(values).newbyteorder("<").str
    content = values.astype(kind, copy=False).tobytes()
    return (kind, content) if valid is None or valid.all() else (kind, content, valid.tobytes())


def _narrowest(values: numpy.ndarray) -> numpy.dtype:
    """The smallest dtype of integers that has them all."""
    import numpy  # here and below: most states have no arrays, and it makes the start slower

    if values.dtype.kind != "i" or not len(values):
        return values.dtype
    least, most = values.min(), values.max()
    for size in (1, 2, 4):
        if -(1 << 8 * size - 1) <= least and most < 1 << 8 * size - 1:
            return numpy.dtype(f"i{size}")
    return values.dtype


def packed_repeat(value: Any, count: int) -> Packed:
    return (_REPEATED, value, count)


def packed_rows(columns: Sequence[Packed]) -> Packed:
    """Tuples, of their places."""
    return tuple(columns)


def unpacked(column: Any) -> Any:
    """The list that was packed. Raises ValueError for what is no packed column."""
    if column.__class__ is not tuple:
        return column
    if not column or column[0].__class__ is not str:
        return list(zip(*map(unpacked, column), strict=True))
    if column[0] == _REPEATED:
        return [column[1]] * column[2]
    return _numbers(*column)


def _numbers(kind: str, content: bytes, valid: bytes | None = None) -> list[Any]:
    import numpy

    values: list[Any] = numpy.frombuffer(content, kind).tolist()
    if valid is None:
        return values
    return [value if there else None for value, there in zip(values, valid, strict=True)]
