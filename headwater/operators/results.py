"""What functions produce, on its way to an output: each result as it was when it was produced.

A function may go on changing an object that it has yielded, and so may whoever gets it. So results that can change in
place are copied, one by one, before the function goes on. The others cost a look at their class. Most batches are of
one shape, such as tuples of two numbers: the loop over a batch is written for the shape of its first result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from types import NoneType
from typing import Any, NamedTuple

from headwater.common.errors import TypeMismatchError
from headwater.common.output_tag import OutputTag
from headwater.operators.base import Output
from headwater.state.copying import ATOMIC, PlainList, captured, protective_copy

Look = Callable[[Any], Any]
"""Gives a result as it is now: the result itself if it cannot change."""


class _Tagged(NamedTuple):
    """A result for a side output, which users write as `yield tag, value`."""

    tag: OutputTag
    values: tuple[Any, ...]


class Results:
    """The results of one batch, of all outputs. Order is kept within each output, not between them."""

    __slots__ = ("_tagged", "take", "timestamps", "values")

    def __init__(self, *, stamped: bool) -> None:
        """`stamped`: results have timestamps."""
        self.values: list[Any] = []
        self.timestamps: list[int | None] | None = [] if stamped else None
        self._tagged: list[_Tagged] = []
        self.take: Callable[..., None] = _taking(self.values, self.timestamps, self._tagged)
        """`take(produced, timestamp=None)`: what the function returned for one record, or yields for it."""

    def take_batch(self, produced: Iterable[Any]) -> None:
        """Take what the function yields for many records. Whoever yields a result appends its timestamp, if stamped."""
        self.values += _each(produced, self._look_at)

    def _look_at(self, result: Any) -> Any:
        return _captured_tuple(result, self._tagged) if type(result) is tuple else protective_copy(result)

    def emit(self, output: Output) -> None:
        """Emit all there is. Nothing may be taken afterwards."""
        values, timestamps = self.values, self.timestamps
        if self._tagged:
            self._emit_apart(output)
        elif values:
            output.emit(values, timestamps)

    def _emit_apart(self, output: Output) -> None:
        main: list[Any] = []
        main_timestamps: list[int | None] = []
        sides: dict[str, tuple[list[Any], list[int | None]]] = {}  # {tag id: (values, timestamps)}
        stamped = self.timestamps is not None
        for result, timestamp in zip(self.values, self.timestamps or [None] * len(self.values), strict=True):
            if type(result) is _Tagged:
                values, value_timestamps = sides.setdefault(result.tag.tag_id, ([], []))
                values.append(_only(result))
                value_timestamps.append(timestamp)
            else:
                main.append(result)
                main_timestamps.append(timestamp)
        if main:
            output.emit(main, main_timestamps if stamped else None)
        for tag_id, (values, value_timestamps) in sides.items():
            output.emit_side(tag_id, values, value_timestamps if stamped else None)


def _taking(values: list[Any], timestamps: list[int | None] | None, tagged: list[_Tagged]) -> Callable[..., None]:
    """A closure, because it is called for each record: a method costs more."""
    append, atomic = values.append, ATOMIC
    stamp = None if timestamps is None else timestamps.append

    def take(produced: Iterable[Any], timestamp: int | None = None) -> None:
        for result in produced:
            kind = type(result)
            if kind is tuple:
                for part in result:
                    if type(part) not in atomic:
                        result = _captured_tuple(result, tagged)
                        break
            elif kind not in atomic:
                result = protective_copy(result)
            append(result)
            if stamp is not None:
                stamp(timestamp)

    return take


def _captured_tuple(result: tuple[Any, ...], tagged: list[_Tagged]) -> Any:
    if not result or type(result[0]) is not OutputTag:
        return protective_copy(result)
    tagged.append(_Tagged(result[0], tuple(map(captured, result[1:]))))
    return tagged[-1]


def _only(result: _Tagged) -> Any:
    if len(result.values) != 1:
        raise TypeMismatchError(
            f"a side output is written as `yield tag, value`; found a tuple of {1 + len(result.values)} that begins "
            f"with {result.tag!r}; put several values into one tuple: `yield tag, (a, b)`"
        )
    return result.values[0]


def taken(results: Iterable[Any], function: Callable[[Any], Any] | None = None) -> list[Any]:
    """`results`, or what `function` makes of each of them, captured one by one as soon as they are there."""
    plain = True

    def look_at(result: Any) -> Any:
        nonlocal plain
        kept = protective_copy(result)
        plain = plain and kept is result
        return kept

    values = _each(results, look_at, function)
    return PlainList(values) if plain else values


def _each(results: Iterable[Any], look_at: Look, function: Callable[[Any], Any] | None = None) -> list[Any]:
    """`look_at(result)` for each of `results`, except that some plain ones are taken as they are, without a look.

    With a function, for what it makes of each of them. Each is looked at before the next one is asked for.
    """
    remaining = iter(results)
    for first in remaining:
        result = first if function is None else function(first)
        values = [look_at(result)]
        kinds = tuple(map(type, result)) if type(result) is tuple else (type(result),)
        if len(kinds) > _MAX_WIDTH:
            kinds = (NoneType,)
        loop = _loop(len(kinds) if type(result) is tuple else None, function is not None)
        expected = (kind if kind in ATOMIC else NoneType for kind in kinds)
        values += loop(remaining, function, look_at, ATOMIC, *expected)
        return values
    return []


_MAX_WIDTH = 64
"""Results that are wider tuples are looked at one by one."""


@cache
def _loop(width: int | None, calls: bool) -> Callable[..., list[Any]]:
    """A loop that takes atoms, or tuples of `width` atoms, as they are, and looks at all other results.

    It expects each part to be of the class that it had in the first result: comparing two classes costs less than
    looking one up. Written out for each width, because a loop over the parts costs twice as much.
    """
    parts = ["r"] if width is None else [f"r[{index}]" for index in range(width)]
    kinds = [f"kind{index}" for index in range(len(parts))]
    conditions = [] if width is None else ["type(r) is tuple", f"len(r) == {width}"]
    conditions += [
        f"(type({part}) is {kind} or type({part}) in atomic)" for part, kind in zip(parts, kinds, strict=True)
    ]
    source = (
        f"lambda results, function, look_at, atomic, {', '.join(kinds)}: "
        f"[r if {' and '.join(conditions)} else look_at(r) "
        f"for {'value in results for r in (function(value),)' if calls else 'r in results'}]"
    )
    loop: Callable[..., list[Any]] = eval(compile(source, __file__, "eval"))  # so its frame is ours
    return loop
