"""Tells results for the main output from those for side outputs, which users write as `yield tag, value`."""

from __future__ import annotations

from typing import Any

from headwater.common.errors import TypeMismatchError
from headwater.common.output_tag import OutputTag
from headwater.operators.base import Output


def emit_results(output: Output, results: list[Any], timestamps: list[int | None] | None) -> None:
    """Emit `results` of one batch, pairs of an `OutputTag` and a value to their side outputs. The lists are given away.

    Order is kept within each output, not between them.
    """
    # One pass over exact classes: 20 ns a result, 40 ns if it is a tuple. Nearly always it finds nothing.
    tagged = [result for result in results if result.__class__ is tuple and result and result[0].__class__ is OutputTag]
    if not tagged:
        if results:
            output.emit(results, timestamps)
        return
    main: list[Any] = []
    main_timestamps: list[int | None] = []
    sides: dict[str, tuple[list[Any], list[int | None]]] = {}  # {tag id: (values, timestamps)}
    stamps = timestamps if timestamps is not None else [None] * len(results)
    for result, timestamp in zip(results, stamps, strict=True):
        if result.__class__ is tuple and result and result[0].__class__ is OutputTag:
            if len(result) != 2:
                raise TypeMismatchError(
                    f"a side output is written as `yield tag, value`; found a tuple of {len(result)} that starts with "
                    f"{result[0]!r}; put several values into one tuple: `yield tag, (a, b)`"
                )
            values, value_timestamps = sides.setdefault(result[0].tag_id, ([], []))
            values.append(result[1])
            value_timestamps.append(timestamp)
        else:
            main.append(result)
            main_timestamps.append(timestamp)
    if main:
        output.emit(main, None if timestamps is None else main_timestamps)
    for tag_id, (values, value_timestamps) in sides.items():
        output.emit_side(tag_id, values, None if timestamps is None else value_timestamps)
