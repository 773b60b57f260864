"""Calls of aggregates over groups of the samples: one of them is of NULLs only, one overflows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tests.sql_functions.case import Case, case, lit

GROUPS = ((0, 1, 2), (3, 6, 7), (5,), (4,))
"""The rows of each group."""

GROUP_SQL = "CASE WHEN id < 3 THEN 0 WHEN id = 4 THEN 3 WHEN id = 5 THEN 2 ELSE 1 END"
QUERY = f"SELECT {GROUP_SQL}, {{}} FROM samples GROUP BY {GROUP_SQL}"

AGGREGATES: list[Case] = [
    case("COUNT"),
    case("COUNT", "i"),
    case("COUNT", "s"),
    case("COUNT", "i", "j"),
    *(case(name, column) for name in ("SUM", "AVG") for column in ("i", "l", "ti", "si", "e", "f", "n", "w")),
    *(case(name, column) for name in ("MIN", "MAX") for column in ("i", "e", "n", "s", "b", "dt", "ts", "z", "tm")),
    *(
        case(name, column)
        for name in ("STDDEV_POP", "STDDEV_SAMP", "VAR_POP", "VAR_SAMP")
        for column in ("ti", "e", "m", "j")
    ),
    case("STDDEV", "e"),
    case("VARIANCE", "e"),
    case("LISTAGG", "s"),
    case("LISTAGG", "s", lit("-")),
    *(
        case(name, column)
        for name in ("COLLECT", "ARRAY_AGG", "FIRST_VALUE", "LAST_VALUE")
        for column in ("i", "s", "b", "n")
    ),
]

ORDER = [row for group in GROUPS for row in group]
OFFSETS = np.cumsum([0, *(len(group) for group in GROUPS)], dtype=np.int64)


def arguments(of: Case) -> list[pa.Array]:
    """The columns, sorted by group."""
    arrays = of.arrays(ORDER)
    return [pa.repeat(each, len(ORDER)) if isinstance(each, pa.Scalar) else each for each in arrays]
