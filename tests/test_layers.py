"""Imports go down only: the order of the packages in `docs/architecture.md`, enforced.

Every import counts, those inside functions and under `TYPE_CHECKING` too: they are dependencies of the reader as well.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "headwater"

LAYERS: tuple[frozenset[str], ...] = (
    frozenset({"common", "metrics"}),
    frozenset({"time"}),
    frozenset({"state"}),
    frozenset({"operators"}),
    frozenset({"checkpoint"}),
    frozenset({"graph"}),
    frozenset({"table", "cep", "datastream"}),
    frozenset({"compat"}),
    frozenset({"runtime"}),
    frozenset({"state_processor", "queryable_state", "testing"}),
    frozenset({"cli", "server", "demo"}),
)
"""From the lowest to the highest. A package may import itself and what is below it."""

NEIGHBOURS = {
    ("metrics", "common"),
    ("table", "datastream"),
    ("cep", "datastream"),
    ("cep", "table"),
    ("cli", "server"),
    ("cli", "demo"),
    ("demo", "server"),
}
"""(importer, imported) on one layer that are meant."""

ONLY_FOR_USERS = "testing"
"""Public helpers for tests: the product itself must not lean on them."""

EXCEPTIONS = {
    ("headwater/datastream/executor.py", "headwater.runtime.job.launcher"),
    ("headwater/table/batch/executor.py", "headwater.runtime.spark.batch_tables"),
}
"""The upward imports: running finds the runtime lazily, so that building a job or a query never loads Spark."""

RUNTIME_LAYERS = ("epoch", "stage", "slot", "job", "spark")
"""The runtime's own layers, from the lowest to the highest. Its other modules may import all of them."""

STARTS_SPARK = ("headwater/runtime/job/launcher.py", "spark")
"""The one import that goes up there: a job starts Spark for its user."""

PYSPARK_ALLOWED = ("headwater/runtime/spark/",)
"""Files and folders (with a final slash) that may import pyspark: the runtime's border, connectors of Spark formats."""


class Import(NamedTuple):
    file: str  # relative to the root
    line: int
    module: str
    lazy: bool  # inside a function

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: imports {self.module}"


def imports_of(source: str, file: str) -> Iterator[Import]:
    """All absolute names that `source` imports; `from a import b` counts as `a.b` (b may be a module)."""
    package = list(Path(file).parent.parts)

    def visit(node: ast.AST, lazy: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                for alias in child.names:
                    yield Import(file, child.lineno, alias.name, lazy)
            elif isinstance(child, ast.ImportFrom):
                base = package[: len(package) - child.level + 1] if child.level else []
                stem = ".".join([*base, *([child.module] if child.module else [])])
                for alias in child.names:
                    yield Import(file, child.lineno, f"{stem}.{alias.name}", lazy)
            yield from visit(child, lazy or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda))

    yield from visit(ast.parse(source), False)


def layer_of(package: str) -> int | None:
    return next((rank for rank, names in enumerate(LAYERS) if package in names), None)


def runtime_rank(parts: Sequence[str]) -> int | None:
    """The layer within the runtime of a file or module, given by its parts; None if it is in none of them."""
    in_runtime = tuple(parts[:2]) == ("headwater", "runtime") and len(parts) > 2
    return RUNTIME_LAYERS.index(parts[2]) if in_runtime and parts[2] in RUNTIME_LAYERS else None


def violation(found: Import) -> str | None:
    """Why `found` breaks a rule, or None."""
    parts = found.module.split(".")
    if parts[0] in ("pyspark", "py4j"):
        if found.file.startswith(PYSPARK_ALLOWED):
            return None
        return f"{found}: {parts[0]} is imported only in {', '.join(PYSPARK_ALLOWED)}"
    if parts[0] != "headwater" or len(parts) < 2:
        return None
    if any(found.file == file and found.module.startswith(module) and found.lazy for file, module in EXCEPTIONS):
        return None

    below, above = runtime_rank(Path(found.file).parts), runtime_rank(parts)
    if below is not None and above is not None and below < above and (found.file, parts[2]) != STARTS_SPARK:
        return f"{found}: of the runtime's layers {' < '.join(RUNTIME_LAYERS)}, one may only import what is below it"

    importer, imported = Path(found.file).parts[1], parts[1]
    target = layer_of(imported)
    if importer == "__main__.py":  # `python -m headwater` is the command line
        importer = "cli"
    if importer == "__init__.py":
        return None if target is None else f"{found}: headwater/__init__.py runs before every layer, so it imports none"
    if importer == imported or target is None:  # its own package, or a plain name such as headwater.__version__
        return None
    if imported == ONLY_FOR_USERS:
        return f"{found}: headwater.testing is for users' tests, not for the product"
    origin = layer_of(importer)
    if origin is None:
        return f"{found.file}: package '{importer}' has no layer; add it to LAYERS in tests/test_layers.py"
    if target < origin or (importer, imported) in NEIGHBOURS:
        return None
    return f"{found}: '{importer}' (layer {origin}) may only import what is below it, '{imported}' is layer {target}"


def violations() -> list[str]:
    found = (
        each
        for path in sorted(PACKAGE.rglob("*.py"))
        for each in imports_of(path.read_text(encoding="utf-8"), path.relative_to(ROOT).as_posix())
    )
    return [text for each in found if (text := violation(each))]


def test_imports_go_down_only() -> None:
    broken = violations()
    assert not broken, "imports against the layer order:\n" + "\n".join(broken)


def test_every_package_has_a_layer() -> None:
    packages = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert {name for name in packages if layer_of(name) is None} == set()


def check(file: str, source: str) -> list[str]:
    return [text for each in imports_of(source, file) if (text := violation(each))]


def test_the_rule_sees_an_upward_import() -> None:
    assert check("headwater/state/timers.py", "from headwater.operators.base import Operator") == [
        "headwater/state/timers.py:1: imports headwater.operators.base.Operator: 'state' (layer 2) may only import"
        " what is below it, 'operators' is layer 3"
    ]


def test_the_rule_sees_relative_lazy_and_type_only_imports() -> None:
    assert check("headwater/common/types.py", "from ..state import timers")
    assert check("headwater/common/types.py", "def f():\n    import headwater.runtime.slot")
    assert check("headwater/common/types.py", "if TYPE_CHECKING:\n    from headwater.graph import plan")
    assert check("headwater/common/types.py", "from headwater import graph")
    assert not check("headwater/common/types.py", "from . import time\nfrom headwater import __version__\nimport os")


def test_the_rule_sees_an_upward_import_within_the_runtime() -> None:
    source = "from headwater.runtime.job.coordinator import Coordinator"
    assert check("headwater/runtime/slot/slot.py", source) == [
        "headwater/runtime/slot/slot.py:1: imports headwater.runtime.job.coordinator.Coordinator: of the runtime's"
        " layers epoch < stage < slot < job < spark, one may only import what is below it"
    ]
    assert not check("headwater/runtime/spark/streaming.py", source)


def test_the_rule_sees_pyspark_outside_its_place() -> None:
    assert check("headwater/datastream/data_stream.py", "def f():\n    from pyspark.sql import DataFrame")
    assert not check("headwater/runtime/spark/session.py", "from pyspark.sql import SparkSession")


def test_the_exception_is_one_lazy_import() -> None:
    source = "from headwater.runtime.job import launcher"
    lazily = f"def f():\n    {source}"
    assert not check("headwater/datastream/executor.py", lazily)
    assert check("headwater/datastream/executor.py", source)
    assert check("headwater/datastream/data_stream.py", lazily)


def test_the_product_does_not_use_its_testing_package() -> None:
    assert check("headwater/runtime/job/launcher.py", "from headwater.testing import ManualClock")
    assert not check("headwater/testing/harness.py", "from headwater.datastream import DataStream")
    assert not check("headwater/testing/in_process.py", "from headwater.runtime.local.job import InProcessJob")
    assert check("headwater/testing/in_process.py", "from headwater.cli import run")
