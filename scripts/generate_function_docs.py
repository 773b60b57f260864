"""Writes docs/sql/functions.md from the functions in headwater.table.functions.

python scripts/generate_function_docs.py           write it
python scripts/generate_function_docs.py --check   exit 1 if it is not current
"""

from __future__ import annotations

import json
import sys
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from headwater.table.functions.definition import FunctionDefinition  # noqa: E402
from headwater.table.functions.registry import all_functions  # noqa: E402
from tests.sql_functions.cases import CASES  # noqa: E402

PAGE = ROOT / "docs" / "sql" / "functions.md"

INTRODUCTION = """# Functions of SQL

Made by `make docs` from the definitions in `headwater/table/functions/`. Do not edit.

Types, names and results are Flink 2.3's: `tests/sql_functions/recorded.json` holds what real Flink gives for {cases}
calls over awkward values, and the tests compare the vectorised kernels (streams) and Spark (batch) with it.

- *Spark*: **native** is an expression of Spark's own, **kernel** runs headwater's kernel in Spark as an Arrow UDF,
  **both** depends on the arguments' types.
- Most functions give NULL if an argument is NULL.
- Integers wrap around on overflow, decimals that do not fit their type are NULL, floats become infinite. An integer or
  decimal divided by zero is an error. Text that a function cannot read is an error for `CAST`, else NULL.
- Times: a `TIMESTAMP_LTZ` shows what clocks in `table.local-time-zone` show. A time in the gap of a change to summer
  time is read with the offset before the gap; an hour that exists twice is its first one. Years go from 1 to 9999.
  Spark holds six digits after the second, Arrow nine.
- Names: `a`, `b` any value, `s` a string, `x` a number, `i` and `n` an integer, `t` a time.
"""

GENERAL = (
    "- Times before 1970: Flink's fields, roundings and casts of timestamps divide towards zero (1969-12-31 23:59 has",
    "  the hour 0, 1900-03-01 12:30 the hour -11). Here they are right, in streams and on Spark.",
    "- `FLOOR` and `CEIL` of a `TIMESTAMP_LTZ` to days or more: Flink takes the offset of the moment itself, here it",
    "  is that of the result. `CEIL(date TO DAY)` is the next day in Flink; `CEIL(t TO WEEK)` of a Sunday is its own",
    "  midnight.",
    "- The year 0 and years after 9999 are unknown here. A key of a map cannot be NULL.",
    "- Decimals compare exactly; Flink rounds to 38 digits first, so that DECIMAL(38, 0) 1 equals 1.25 there.",
    "- A string compares with a date or time, and with nothing else that is no string.",
    "- `CASE` of FLOAT and DOUBLE is DOUBLE; in Flink it has the type of the first.",
    "- `IS DISTINCT FROM`, `IN`, `BETWEEN`, `MIN` and `MAX` of NaN: Spark takes NaN for equal to itself and greater",
    "  than all numbers.",
    "- An overflow of `SUM` of decimals is NULL; Flink goes on from there with the next value.",
)


def main() -> int:
    if "--check" in sys.argv[1:]:
        if PAGE.exists() and PAGE.read_text(encoding="utf-8") == page():
            return 0
        print(f"{PAGE.relative_to(ROOT)} is not current: run `make docs`", file=sys.stderr)
        return 1
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")
    return 0


def page() -> str:
    """The whole page."""
    return "\n".join([INTRODUCTION.format(cases=_recorded()), *_families(), *_notes()]) + "\n"


def _recorded() -> int:
    return len(json.loads((ROOT / "tests" / "sql_functions" / "recorded.json").read_text("utf-8")))


def _families() -> list[str]:
    found = []
    for family, functions in groupby(all_functions(), key=lambda each: each.family):
        found += [f"## {family[0].upper()}{family[1:]}", "", "| call | gives | Spark |", "|---|---|---|"]
        found += [_row(each) for each in functions]
        found.append("")
    return found


def _row(function: FunctionDefinition) -> str:
    also = f" Also: {', '.join(f'`{each}`' for each in function.aliases)}." if function.aliases else ""
    return f"| `{_cell(function.syntax)}` | {_cell(function.description)}{also} | {_on_spark(function)} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _on_spark(function: FunctionDefinition) -> str:
    """By the calls of the tests: which of them are Spark's own."""
    if function.recipe is not None:
        return "native"
    texts = [each.bind() for each in CASES if each.bind().function is function]
    kernels = [each for each in texts if each.spark_udf("UTC") is not None]
    if not texts:
        return "native" if function.spark_text is not None else "kernel"
    return "native" if not kernels else "kernel" if len(kernels) == len(texts) else "both"


def _notes() -> list[str]:
    notes = [f"- `{each.name}`: {each.note}" for each in all_functions() if each.note]
    return ["## Where engines differ", "", *GENERAL, *notes]


if __name__ == "__main__":
    sys.exit(main())
