"""What functions produce, on its way to an output: each result as it was when it was produced.

A function may go on changing an object that it has yielded, and so may whoever gets it. So results that can change in
place are copied, one by one, before the function goes on. The others cost a look at their class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from headwater.common.errors import TypeMismatchError
from headwater.common.output_tag import OutputTag
from headwater.operators.base import Output
from headwater.state.copying import ATOMIC, PlainList, captured, protective_copy


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
            if result.__class__ is _Tagged:
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
    if result[0].__class__ is not OutputTag:
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
    values, plain = PlainList(), True
    append, atomic = values.append, ATOMIC
    for result in results:
        if function is not None:
            result = function(result)
        kind = type(result)
        if kind is tuple:
            for part in result:
                if type(part) not in atomic:
                    result, plain = protective_copy(result), False
                    break
        elif kind not in atomic:
            result, plain = protective_copy(result), False
        append(result)
    return values if plain else list(values)
