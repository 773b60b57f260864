"""Functions of users: their types, their calls on streams, and what goes wrong. Spark runs them in tests/spark."""

from __future__ import annotations

import asyncio
import pickle
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import cloudpickle
import pandas as pd
import pyarrow as pa
import pytest

from headwater.common.errors import SqlError, UserFunctionError
from headwater.table import DataTypes, EnvironmentSettings, Row, Table, TableEnvironment
from headwater.table.batch.spark_sql import batch_query
from headwater.table.expressions import call, col, lit
from headwater.table.types import logical as t
from headwater.table.udf import (
    AggregateFunction,
    AsyncScalarFunction,
    FunctionContext,
    ListView,
    MapView,
    ScalarFunction,
    TableAggregateFunction,
    TableFunction,
    udaf,
    udf,
    udtaf,
    udtf,
)
from headwater.testing import in_process
from tests.unit.table.stream.oracle import Query, run


@udf
def twice(x: int) -> int | None:
    return None if x is None else x * 2


@udf(result_type=DataTypes.BIGINT(), input_types=[DataTypes.BIGINT(), DataTypes.BIGINT()])
def add(x: Any, y: Any) -> Any:
    return x + y


class Scaled(ScalarFunction):
    """A function with state that `open` makes."""

    def __init__(self, by: int) -> None:
        self._by = by
        self._factor: int | None = None

    def open(self, function_context: FunctionContext) -> None:
        assert self._factor is None, "opened twice"
        self._factor = self._by

    def eval(self, x: int) -> int:
        assert self._factor is not None
        return x * self._factor


class Slow(AsyncScalarFunction):
    async def eval(self, x: int) -> str:
        await asyncio.sleep(0)
        return f"<{x}>"


@udf(result_type="DOUBLE", func_type="pandas")
def share(x: pd.Series, y: pd.Series) -> pd.Series:
    return x / (x + y)


@udtf
def words(s: str) -> Iterator[tuple[str, int]]:
    for word in (s or "").split():
        yield word, len(word)


class Upto(TableFunction):
    def eval(self, n: int) -> Iterator[int]:
        return iter(range(n))


class Mean(AggregateFunction):
    """Keeps its values in a ListView, to have one."""

    def create_accumulator(self) -> Any:
        return Row(ListView(), 0)

    def accumulate(self, accumulator: Any, value: Any) -> None:
        if value is not None:
            accumulator[0].add(value)
            accumulator[1] += 1

    def get_value(self, accumulator: Any) -> Any:
        return sum(accumulator[0]) / accumulator[1] if accumulator[1] else None

    def get_result_type(self) -> Any:
        return DataTypes.DOUBLE()


class Top2(TableAggregateFunction):
    def create_accumulator(self) -> list[int]:
        return []

    def accumulate(self, accumulator: list[int], value: int) -> None:
        accumulator.append(value)
        accumulator.sort(reverse=True)
        del accumulator[2:]

    def emit_value(self, accumulator: list[int]) -> Iterator[tuple[int, int]]:
        yield from enumerate(accumulator, 1)


spread = udaf(lambda x: x.max() - x.min(), result_type="BIGINT", func_type="pandas", name="spread")


def environment() -> TableEnvironment:
    made = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for name, function in {
        "twice": twice, "add2": add, "scaled": udf(Scaled(3)), "slow": udf(Slow()), "share": share, "words": words,
        "upto": udtf(Upto()), "mean": udaf(Mean()), "spread": spread,
    }.items():  # fmt: skip
        made.create_temporary_system_function(name, function)
    return made


def table(made: TableEnvironment) -> Table:
    rows = [(1, 10, "a bb"), (2, 20, "c"), (3, None, ""), (4, 40, None)]
    schema = DataTypes.ROW(
        [DataTypes.FIELD("id", DataTypes.BIGINT()), DataTypes.FIELD("v", DataTypes.INT()),
         DataTypes.FIELD("s", DataTypes.STRING())]
    )  # fmt: skip
    found = made.from_elements(rows, schema)
    made.create_temporary_view("t", found)
    return found


def rows(result: Any) -> list[tuple[Any, ...]]:
    with in_process(), result.execute().collect() as found:
        return [tuple(row) for row in found]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT twice(v) FROM t", [(20,), (40,), (None,), (80,)]),
        ("SELECT add2(id, 1) FROM t WHERE twice(id) > 4", [(4,), (5,)]),
        ("SELECT scaled(id) + scaled(1) FROM t", [(6,), (9,), (12,), (15,)]),
        ("SELECT slow(id) FROM t", [("<1>",), ("<2>",), ("<3>",), ("<4>",)]),
        ("SELECT share(id, id) FROM t WHERE id < 3", [(0.5,), (0.5,)]),
        ("SELECT id, w, n FROM t, LATERAL TABLE(words(s)) AS f(w, n)", [(1, "a", 1), (1, "bb", 2), (2, "c", 1)]),
        ("SELECT id, f0 FROM t, LATERAL TABLE(words(s)) WHERE f1 > 1", [(1, "bb")]),
        ("SELECT id, w FROM t LEFT JOIN LATERAL TABLE(words(s)) AS f(w, n) ON TRUE WHERE id > 1",
         [(2, "c"), (3, None), (4, None)]),
        ("SELECT x FROM TABLE(upto(2)) AS f(x)", [(0,), (1,)]),
        ("SELECT mean(v), COUNT(*) FROM t", [(70 / 3, 4)]),
        ("SELECT id > 2, mean(v) FILTER (WHERE id < 4) FROM t GROUP BY id > 2", [(False, 15.0), (True, None)]),
        ("SELECT spread(id) FROM t", [(3,)]),
    ],
)  # fmt: skip
def test_functions_in_sql(sql: str, expected: list[Any]) -> None:
    made = environment()
    table(made)
    assert sorted(rows(made.sql_query(sql)), key=repr) == sorted(expected, key=repr)


def test_functions_of_the_table_api() -> None:
    made = environment()
    t1 = table(made)
    some = t1.where(col("id") < 3)
    assert rows(some.select(twice(col("v")).alias("x"))) == [(20,), (40,)]
    assert rows(some.select(call("twice", col("v")), call(add, col("id"), lit(1)))) == [(20, 2), (40, 3)]
    assert rows(some.join_lateral(words(col("s")).alias("w", "n")).select(col("w"))) == [("a",), ("bb",), ("c",)]
    left = t1.left_outer_join_lateral(words(col("s")).alias("w", "n")).where(col("id") > 1)
    assert rows(left.select(col("id"), col("n"))) == [(2, 1), (3, None), (4, None)]
    assert rows(some.flat_map(words(col("s")))) == [("a", 1), ("bb", 2), ("c", 1)]
    both = udf(lambda row: (row.id, row.v * 2), result_type="ROW<a BIGINT, b BIGINT>", name="both")
    mapped = some.map(both)
    assert [column.name for column in mapped.get_schema().fields] == ["a", "b"]
    assert rows(mapped) == [(1, 20), (2, 40)]
    assert rows(some.map(add(col("id"), col("id")).alias("sum"))) == [(2,), (4,)]
    mean = udaf(Mean())
    assert rows(some.aggregate(mean(col("v")).alias("m")).select(col("m"))) == [(15.0,)]
    keyed = t1.add_columns((col("id") % 2).alias("k")).group_by(col("k"))
    assert sorted(rows(keyed.aggregate(mean(col("id")).alias("m")).select(col("k"), col("m")))) == [(0, 3.0), (1, 2.0)]
    top = udtaf(Top2())
    found = rows(keyed.flat_aggregate(top(col("id")).alias("r", "x")).select(col("k"), col("r"), col("x")))
    assert sorted(found) == [(0, 1, 4), (0, 2, 2), (1, 1, 3), (1, 2, 1)]


class _Pair(NamedTuple):
    a: int
    b: str


@pytest.mark.parametrize(
    ("annotation", "type_"),
    [
        (int, t.BIGINT),
        (str | None, t.STRING),
        (list[float], t.ArrayType(element=t.DOUBLE)),
        (dict[str, int], t.MapType(key=t.STRING, value=t.BIGINT)),
        (_Pair, t.RowType(fields=(t.RowField("a", t.BIGINT), t.RowField("b", t.STRING)))),
        (tuple[int, bool], t.RowType(fields=(t.RowField("f0", t.BIGINT), t.RowField("f1", t.BOOLEAN)))),
    ],
)
def test_annotations_say_the_type(annotation: Any, type_: t.LogicalType) -> None:
    def function(x: Any) -> Any: ...

    function.__annotations__["return"] = annotation
    assert udf(function).result_type == type_


def test_nested_values_go_in_and_out() -> None:
    made = environment()
    swap = udf(lambda r, m, a: ({"b": r.a, "a": r.b}, {k: v + 1 for k, v in m.items()}, a[::-1]),
               result_type="ROW<r ROW<a INT, b INT>, m MAP<STRING, INT>, a ARRAY<INT>>")  # fmt: skip
    made.create_temporary_system_function("swap", swap)
    sql = "SELECT swap(CAST(ROW(1, 2) AS ROW<a INT, b INT>), MAP['x', 1], ARRAY[1, 2])"
    (found,) = rows(made.sql_query(sql))
    assert tuple(found[0][0]) == (2, 1) and found[0][1] == {"x": 2} and found[0][2] == [2, 1]


def test_names_are_found_in_order() -> None:
    made = environment()
    table(made)
    made.create_temporary_function("upper", udf(lambda s: "mine", result_type="STRING"))
    made.create_temporary_function("default_catalog.default_database.other", udf(lambda: 1, result_type="INT"))
    assert rows(made.sql_query("SELECT UPPER('x'), default_database.upper('x'), OTHER()")) == [("X", "mine", 1)]
    made.create_temporary_system_function("upper", udf(lambda s: "system", result_type="STRING"))
    assert rows(made.sql_query("SELECT UPPER('x')")) == [("system",)]
    assert made.drop_temporary_system_function("upper") and not made.drop_temporary_system_function("upper")
    assert made.drop_temporary_function("other")
    assert "other" not in made.list_user_defined_functions() and "upper" in made.list_user_defined_functions()
    with pytest.raises(SqlError, match="there is no function 'OTHER'"):
        made.sql_query("SELECT OTHER()")
    with pytest.raises(SqlError, match=r"there is no function 'a\.b\.c' in a catalog"):
        made.sql_query("SELECT a.b.c(1)")


def test_create_function_imports_python() -> None:
    made = environment()
    here = "tests.unit.table.test_user_functions"
    made.execute_sql(f"CREATE FUNCTION f AS '{here}.twice' LANGUAGE PYTHON")
    made.execute_sql(f"CREATE TEMPORARY SYSTEM FUNCTION IF NOT EXISTS g AS '{here}.Upto' LANGUAGE PYTHON")
    assert rows(made.sql_query("SELECT f(2), x FROM TABLE(g(1)) AS u(x)")) == [(4, 0)]
    names = [row[0] for row in made.execute_sql("SHOW USER FUNCTIONS").collect()]
    assert {"f", "g"} <= {*names}
    with pytest.raises(SqlError, match=r"line 1, column 1: function '.*f' exists"):
        made.execute_sql(f"CREATE FUNCTION f AS '{here}.twice' LANGUAGE PYTHON")
    made.execute_sql("DROP FUNCTION f")
    made.execute_sql("DROP TEMPORARY SYSTEM FUNCTION g")
    made.execute_sql("DROP FUNCTION IF EXISTS f")
    for path, text in ((f"{here}.nothing", "has no 'nothing'"), ("no_such_module.f", "cannot be imported"),
                       ("f", "is no 'module.attribute'"), (f"{here}.rows", "expected what udf")):  # fmt: skip
        with pytest.raises(SqlError, match=text):
            made.execute_sql(f"CREATE FUNCTION f AS '{path}' LANGUAGE PYTHON")


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: udf(lambda x: x), "says not what it returns"),
        (lambda: udf(Scaled), "Scaled is a class; give an instance"),
        (lambda: udf(Upto()), "Upto is no ScalarFunction"),
        (lambda: udf(lambda x: x, result_type=int), "is no type"),
        (lambda: udf(lambda x: x, result_type="INT", func_type="numpy"), "'general' or 'pandas'"),
        (lambda: udaf(lambda x: x, result_type="INT"), "is no AggregateFunction"),
        (lambda: udf(Scaled(1), result_type="INT", deterministic=False), "is_deterministic"),
    ],
)
def test_wrong_definitions(make: Any, text: str) -> None:
    with pytest.raises(SqlError, match=text):
        make()


@pytest.mark.parametrize(
    ("sql", "text"),
    [
        ("SELECT add2(1) FROM t", "line 1, column 8: add2 takes 2 arguments"),
        ("SELECT add2(1, s) FROM t", "argument 2 of add2 is BIGINT, got"),
        ("SELECT words(s) FROM t", "words is a table function; it stands in FROM|WORDS is a table function"),
        ("SELECT id FROM t GROUP BY mean(id)", "an aggregate may not stand in GROUP BY"),
        ("SELECT * FROM t, LATERAL TABLE(nothing(s))", "there is no table function 'nothing'"),
    ],
)
def test_wrong_calls(sql: str, text: str) -> None:
    made = environment()
    table(made)
    with pytest.raises(SqlError, match=text):
        made.sql_query(sql)


def test_an_error_names_place_arguments_and_cause() -> None:
    made = environment()
    table(made)
    made.create_temporary_system_function("bad", udf(lambda x: 1 // (x - 2), result_type="BIGINT"))
    with pytest.raises(Exception, match="ZeroDivisionError") as caught:
        rows(made.sql_query("SELECT id,\n  bad(id) FROM t"))
    text = str(caught.value)
    assert "function bad at line 2, column 3 failed" in text and "arguments: (2,)" in text
    assert "test_user_functions.py" in text


def test_a_result_of_the_wrong_type() -> None:
    made = environment()
    table(made)
    made.create_temporary_system_function("bad", udf(lambda x: "no", result_type="BIGINT"))
    with pytest.raises(Exception, match=r"function bad gave 'no' \(str\), its result type is BIGINT"):
        rows(made.sql_query("SELECT bad(id) FROM t"))


def test_a_function_that_is_not_deterministic_takes_no_updates() -> None:
    made = environment()
    table(made)
    made.create_temporary_system_function("dice", udf(lambda x: 4, result_type="INT", deterministic=False))
    assert rows(made.sql_query("SELECT dice(id) FROM t WHERE id = 1")) == [(4,)]
    with pytest.raises(SqlError, match="gives another value each time"):
        rows(made.sql_query("SELECT dice(n) FROM (SELECT s, COUNT(*) AS n FROM t GROUP BY s)"))


def test_errors_survive_pickling() -> None:
    error = UserFunctionError("f at line 1, column 8", "(1,)", -1, "Traceback", "ValueError()")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_views() -> None:
    view: MapView[str, int] = MapView()
    view["a"] = 1
    view.put_all({"b": 2})
    del view["a"]
    assert list(view.items()) == [("b", 2)] and "b" in view and view.contains("b") and len(view) == 1
    view.clear()
    assert view.is_empty()
    items: ListView[int] = ListView()
    items.add_all([1, 2])
    assert cloudpickle.loads(cloudpickle.dumps(items)) == items and list(items) == [1, 2]


def test_an_aggregate_of_updated_rows_is_right_after_every_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.unit.table.stream import oracle

    original = oracle.StreamTableEnvironment.create

    def create(*arguments: Any) -> Any:
        made = original(*arguments)
        made.create_temporary_system_function("mean", udaf(Mean()))
        made.create_temporary_system_function("spread2", spread)
        made.create_temporary_system_function("upto", udtf(Upto()))
        return made

    monkeypatch.setattr(oracle.StreamTableEnvironment, "create", staticmethod(create))
    run(
        [
            Query("SELECT k, mean(v) FROM t GROUP BY k", "SELECT k, AVG(v) FROM t GROUP BY k"),
            Query("SELECT spread2(id), COUNT(*) FROM t", "SELECT MAX(id) - MIN(id), COUNT(*) FROM t"),
            Query("SELECT id, x FROM t, LATERAL TABLE(upto(id)) AS f(x)",
                  "SELECT id, x FROM t, LATERAL (SELECT UNNEST(range(id))) f(x)"),
            Query("SELECT id, x FROM t LEFT JOIN LATERAL TABLE(upto(id)) AS f(x) ON TRUE",
                  "SELECT id, x FROM t LEFT JOIN LATERAL (SELECT UNNEST(range(id))) f(x) ON TRUE"),
        ],
        400, deletes=True, backend="hashmap", crash=True,
    )  # fmt: skip


def test_what_spark_gets() -> None:
    """Its text, and the functions that it registers, called on the columns that it hands over."""
    made = environment()
    table(made)
    query = batch_query(
        made.sql_query("SELECT twice(id), mean(v) FILTER (WHERE id > 0) FROM t GROUP BY twice(id)")._plan
    )
    scalar, aggregate = (binding.spark_udf("UTC") for binding in query.kernels)
    assert scalar is not None and aggregate is not None
    assert re.search(rf"{aggregate.name}\(COLLECT_LIST\(NAMED_STRUCT\('0', \w+\)\) +FILTER \(WHERE \w+\)\)", query.sql)
    assert scalar.name in query.sql and (scalar.result, aggregate.result) == ("BIGINT", "DOUBLE")
    assert scalar.function(pa.array([1, None])).to_pylist() == [2, None]
    groups = pa.array([[{"0": 9}], [{"0": 1}, {"0": None}, {"0": 2}], []], pa.list_(pa.struct([("0", pa.int32())])))
    assert aggregate.function(groups).to_pylist() == [9.0, 1.5, None]
    assert aggregate.function(groups.slice(1)).to_pylist() == [1.5, None]
    lateral = batch_query(made.sql_query("SELECT w FROM t, LATERAL TABLE(words(s)) AS f(w, n)")._plan)
    function = lateral.kernels[0].spark_udf("UTC")
    assert function is not None and "LATERAL VIEW POSEXPLODE(headwater_words_" in lateral.sql
    assert function.function(pa.array(["a bb", None])).to_pylist() == [
        [{"f0": "a", "f1": 1}, {"f0": "bb", "f1": 2}],
        [],
    ]


class CountAndSum(AggregateFunction):
    """Gives two values, of whole rows."""

    def create_accumulator(self) -> list[int]:
        return [0, 0]

    def accumulate(self, accumulator: list[int], *args: Any) -> None:
        accumulator[0] += 1
        accumulator[1] += args[0].id

    def get_value(self, accumulator: list[int]) -> Row:
        return Row(*accumulator)

    def get_result_type(self) -> str:
        return "ROW<n BIGINT, s BIGINT>"


def test_names_before_the_call() -> None:
    made = environment()
    source = made.from_elements([(1, "a b"), (2, "c")], ["id", "s"])

    @udtf(result_types=["STRING"])
    def split(row: Row) -> Iterator[str]:
        yield from row.s.split()

    found = source.join_lateral(split.alias("word")).select(col("id"), col("word"))
    assert sorted(rows(found)) == [(1, "a"), (1, "b"), (2, "c")]
    total = source.group_by().aggregate(udaf(CountAndSum()).alias("n", "total")).select(col("total"), col("n"))
    assert rows(total)[-1] == (3, 2)


SEEN: list[str] = []
"""What functions in this process were told."""


class Curious(ScalarFunction):
    """Asks for all that `open` may know."""

    def open(self, function_context: FunctionContext) -> None:
        self._calls = function_context.get_metric_group().counter("calls")
        self._greeting = function_context.get_job_parameter("greeting", "none")
        SEEN.append(f"open {function_context.get_number_of_parallel_subtasks()}")
        SEEN.append(f"{function_context.get_index_of_this_subtask()} {function_context.get_attempt_number()}")

    def eval(self, x: int) -> str:
        self._calls.inc()
        return f"{self._greeting} {x}"

    def close(self) -> None:
        SEEN.append("close")


class CuriousSum(AggregateFunction):
    def open(self, function_context: FunctionContext) -> None:
        self._greeting = function_context.get_job_parameter("greeting", "none")

    def create_accumulator(self) -> list[int]:
        return [0]

    def accumulate(self, accumulator: list[int], *args: Any) -> None:
        accumulator[0] += args[0]

    def get_value(self, accumulator: list[int]) -> str:
        return f"{self._greeting} {accumulator[0]}"

    def close(self) -> None:
        SEEN.append("close the sum")


def test_functions_know_their_job_and_are_closed() -> None:
    SEEN.clear()
    made = environment()
    made.get_config().set("parallelism.default", "1").set("pipeline.global-job-parameters", "greeting:hello")
    source = made.from_elements([(1,), (2,)], ["id"])
    made.create_temporary_system_function("curious", udf(Curious(), result_type="STRING"))
    made.create_temporary_system_function("total", udaf(CuriousSum(), result_type="STRING"))
    with in_process():
        assert sorted(rows(source.select(call("curious", col("id"))))) == [("hello 1",), ("hello 2",)]
        assert rows(source.select(call("total", col("id"))))[-1] == ("hello 3",)
    assert SEEN == ["open 1", "0 0", "close", "close the sum"]


def test_without_a_job_there_are_defaults() -> None:
    context = FunctionContext()
    assert context.get_job_parameter("k", "d") == "d"
    context.get_metric_group().counter("c").inc()
    assert context.get_index_of_this_subtask() == 0
