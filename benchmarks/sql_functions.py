"""`python -m benchmarks.sql_functions`: microseconds of CPU per row of some kernels, in frames of 16 k rows."""

from __future__ import annotations

import time
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.table.functions.definition import BoundArgument
from headwater.table.functions.frame import Frame
from headwater.table.functions.registry import lookup
from headwater.table.types.arrow import to_arrow
from headwater.table.types.type_text import parse_type

ROWS = 16_384
REPETITIONS = 7


def columns() -> dict[str, tuple[str, pa.Array]]:
    """Columns like those of Nexmark's bids."""
    random = np.random.default_rng(7)
    numbers = random.integers(1, 10_000_000, ROWS)
    micros = random.integers(0, 1_700_000_000_000_000, ROWS)
    urls = [f"https://www.nexmark.com/a{each}/b{each % 7}/item.htm?query=1&channel_id={each}" for each in numbers]
    return {
        "l": ("BIGINT", pa.array(numbers)),
        "n": ("DECIMAL(10, 2)", pa.array([Decimal(int(each)) / 100 for each in numbers], pa.decimal128(10, 2))),
        "d": ("DOUBLE", pa.array(numbers / 7)),
        "b": ("BOOLEAN", pa.array(numbers % 2 == 0)),
        "s": ("STRING", pa.array(urls)),
        "num": ("STRING", pa.array([str(each) for each in numbers])),
        "ts": ("TIMESTAMP(3)", pa.array(micros // 1000 * 1000).cast(pa.timestamp("us"))),
        "js": ("STRING", pa.array([f'{{"a":{each},"b":"x"}}' for each in numbers])),
    }


CALLS: tuple[tuple[Any, ...], ...] = (
    ("*", Decimal("0.908"), "l"),
    ("+", "l", "l"),
    ("/", "l", 7),
    ("/", "n", "n"),
    ("=", "l", 42),
    ("AND", "b", "b"),
    ("IN", "l", 1, 2, 3),
    ("CASE", "b", "l", 0),
    ("CAST", "l", "STRING"),
    ("CAST", "num", "BIGINT"),
    ("CAST", "d", "DECIMAL(10, 2)"),
    ("HOUR", "ts"),
    ("FLOOR", "ts", "HOUR"),
    ("DATE_FORMAT", "ts", "'yyyy-MM-dd HH:mm"),
    ("DATE_FORMAT", "ts", "'EEE d MMM yyyy"),
    ("LIKE", "s", "'%b3%"),
    ("UPPER", "s"),
    ("SPLIT_INDEX", "s", "'/", 3),
    ("REGEXP_EXTRACT", "s", "'(&|^)channel_id=([^&]*)", 2),
    ("MD5", "s"),
    ("JSON_VALUE", "js", "'$.a"),
    ("TIMESTAMPDIFF", "'DAY", "ts", "ts"),
)
"""Function and arguments: a string is a column, with a quote a literal, or the type of a CAST."""


def main() -> None:
    known = columns()
    print("| call | us/row |\n|---|---|")
    for name, *arguments in CALLS:
        definition = lookup(name)
        assert definition is not None
        bound, arrays = [], []
        for each in arguments:
            argument, array = _argument(each, known)
            bound.append(argument)
            arrays.append(array)
        binding = definition.bind(bound)
        frame = Frame(rows=ROWS)
        best = min(_seconds(binding, arrays, frame) for _ in range(REPETITIONS))
        text = ", ".join(str(each).removeprefix("'") for each in arguments)
        print(f"| `{name}({text})` | {best / ROWS * 1e6:.3f} |")


def _argument(given: Any, known: dict[str, tuple[str, pa.Array]]) -> tuple[BoundArgument, Any]:
    if given in known:
        kind, array = known[given]
        return BoundArgument(parse_type(kind)), array
    if isinstance(given, str) and given[0] != "'" and given != "HOUR":
        kind_of_cast = parse_type(given)
        return BoundArgument(kind_of_cast, kind_of_cast), pa.scalar(None)
    value = given.removeprefix("'") if isinstance(given, str) else given
    if isinstance(value, str):
        text = f"CHAR({len(value)}) NOT NULL"
    else:
        text = "DECIMAL(3, 3) NOT NULL" if isinstance(value, Decimal) else "INT NOT NULL"
    kind_of_literal = parse_type(text)
    return BoundArgument(kind_of_literal, value), pa.scalar(value, to_arrow(kind_of_literal))


def _seconds(binding: Any, arrays: list[Any], frame: Frame) -> float:
    start = time.process_time()
    binding.kernel(arrays, frame)
    return time.process_time() - start


if __name__ == "__main__":
    main()
