"""Every function of SQL on Spark: the same types and values as the kernel, and as real Flink's."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from headwater.runtime.spark.kernel_udfs import register_kernels
from headwater.table.types.arrow import to_arrow
from headwater.table.types.logical import LogicalType, TypeRoot
from headwater.table.types.spark import spark_type
from tests.sql_functions import samples
from tests.sql_functions.aggregate_cases import AGGREGATES, GROUP_SQL
from tests.sql_functions.case import Case
from tests.sql_functions.cases import CASES
from tests.sql_functions.comparing import RECORDED, canonical_values, same
from tests.sql_functions.differences import accepted, not_compared

AT_ONCE = 80
"""So many calls in one query: each query takes a second."""


@dataclass
class Outcomes:
    """What Spark gave: {sql: (type, values)}, or the error's text."""

    session: SparkSession
    found: dict[str, tuple[str, list[Any]] | str] = field(default_factory=dict)

    def run(self, cases: list[Case], query: str) -> None:
        """Run the calls in one query. If that fails, halve them until those that fail are alone."""
        if not cases:
            return
        texts = [_text(each) for each in cases]
        columns = ", ".join(f"{text} AS c{at}" for at, text in enumerate(texts))
        try:
            frame = self.session.sql(query.format(columns))
            types = {each.name: each.dataType.simpleString() for each in frame.schema}
            table = frame.toArrow()
        except Exception as error:
            if len(cases) == 1:
                self.found[cases[0].sql] = str(error).splitlines()[0]
                return
            middle = len(cases) // 2
            self.run(cases[:middle], query)
            self.run(cases[middle:], query)
            return
        for at, each in enumerate(cases):
            kind = each.bind().result_type
            array = table[f"c{at}"].combine_chunks()
            self.found[each.sql] = types[f"c{at}"], canonical_values(_as_ours(array, kind), kind)


def _text(case: Case) -> str:
    binding = case.bind()
    aggregate = binding.function.recipe is not None
    return binding.spark_aggregate(case.spark_arguments()) if aggregate else binding.spark(case.spark_arguments())


def _as_ours(array: pa.Array, kind: LogicalType) -> pa.Array:
    """Spark has no TIME."""
    return array.cast(to_arrow(kind)) if kind.root is TypeRoot.TIME else array


@pytest.fixture(scope="module")
def outcomes() -> Outcomes:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate().newSession()
    session.conf.set("spark.sql.session.timeZone", samples.ZONE)
    session.conf.set("spark.sql.ansi.enabled", "true")
    rows = samples.table().append_column("id", pa.array(range(samples.ROWS), pa.int32()))
    rows = rows.set_column(rows.schema.get_field_index("tm"), "tm", rows["tm"].cast(pa.int32()))
    schema = ", ".join(f"{name} {spark_type(samples.type_of(name))}" for name in samples.COLUMNS)
    session.createDataFrame(rows, f"{schema}, id INT").createOrReplaceTempView("samples")
    register_kernels(session, [each.bind() for each in CASES], samples.ZONE)
    found = Outcomes(session)
    by_group = f"SELECT {{}} FROM samples GROUP BY {GROUP_SQL} ORDER BY {GROUP_SQL}"
    for cases, query in ((CASES, "SELECT {} FROM samples ORDER BY id"), (AGGREGATES, by_group)):
        failing = [each for each in cases if "failed" in RECORDED[each.sql] or accepted(each, "spark")]
        others = [each for each in cases if each not in failing]
        for at in range(0, len(others), AT_ONCE):
            found.run(others[at : at + AT_ONCE], query)
        for each in failing:
            found.run([each], query)
    return found


@pytest.mark.timeout(900)
@pytest.mark.parametrize("case", [*CASES, *AGGREGATES], ids=lambda case: case.sql)
def test_spark_gives_flinks_result(case: Case, outcomes: Outcomes) -> None:
    expected, found, kind = RECORDED[case.sql], outcomes.found[case.sql], case.bind().result_type
    if isinstance(found, str):
        assert "failed" in expected or accepted(case, "spark"), found
        return
    name, values = found
    assert name.lower() == spark_type(kind).lower().replace(": ", ":").replace(", ", ",").replace("`", "")
    if accepted(case, "spark"):
        return
    assert "failed" not in expected, "Flink fails, Spark does not"
    assert same(values, expected["values"], kind, not_compared(case)), f"{values}\n{expected['values']}"


def test_an_empty_table_gives_no_rows(outcomes: Outcomes) -> None:
    columns = ", ".join(f"{_text(each)} AS c{at}" for at, each in enumerate(CASES[:80]))
    assert outcomes.session.sql(f"SELECT {columns} FROM samples WHERE id < 0").toArrow().num_rows == 0
