"""What PyFlink has, headwater has, or says why not. `pyflink_api.txt` lists PyFlink's names and signatures."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from headwater.compat.missing_modules import explain_missing_name

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "parity_table.py"


@pytest.fixture(scope="module")
def table() -> ModuleType:
    spec = importlib.util.spec_from_file_location("parity_table", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["parity_table"] = module
    spec.loader.exec_module(module)
    return module


def test_every_gap_has_a_reason_and_the_page_is_current() -> None:
    ended = subprocess.run([sys.executable, str(SCRIPT), "--check"], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("pyflink.datastream.data_stream.DataStream.map(func, output_type=None)", "yes"),
        ("pyflink.datastream.DataStream -> pyflink.datastream.data_stream.DataStream", "yes"),
        ("pyflink.common.types.RowKind.INSERT", "yes"),
        ("pyflink.table.TableEnvironment -> pyflink.table.table_environment.TableEnvironment", "yes"),
        ("pyflink.table.catalog.CatalogFunction", "not yet"),
        ("pyflink.java_gateway.get_gateway()", "never"),
        ("pyflink.common.typeinfo.TypeInformation.get_java_type_info()", "never"),
        ("pyflink.datastream.data_stream.DataStream.no_such_method()", "UNEXPLAINED"),
        ("pyflink.datastream.no_such_module", "UNEXPLAINED"),
        ("pyflink.datastream.data_stream.DataStream.map(function, output_type=None)", "UNEXPLAINED"),
        ("pyflink.datastream.data_stream.DataStream.map(func, output_type=3)", "UNEXPLAINED"),
        ("pyflink.datastream.data_stream.DataStream.map(func, output_type=None, extra=1)", "UNEXPLAINED"),
    ],
)
def test_verdicts(table: ModuleType, line: str, status: str) -> None:
    assert table.judge(line).status == status


ABOUT_JAVA = re.compile(r"\b(Java|JVM)\b")
OF_NO_USE = {
    "internal to PyFlink": {"AccumulateType", "AsyncFunctionDescriptor", "BaseBuilder", "register_next_fire_timestamp"},
    "replaced in Flink": {"StreamingFileSink"},
}
"""Names that are in no documentation of Flink for its users, or no longer."""


def test_what_remains_is_about_java_and_the_table_api(table: ModuleType) -> None:
    missing = [verdict for verdict in table.verdicts() if verdict.status in ("not yet", "never")]
    assert all("Table API" in verdict.note for verdict in missing if verdict.status == "not yet")
    never = [verdict for verdict in missing if verdict.status == "never" and not ABOUT_JAVA.search(verdict.note)]
    useless = frozenset().union(*OF_NO_USE.values())
    assert not [verdict for verdict in never if useless.isdisjoint(verdict.name.split("."))]


def test_what_a_package_passes_on_is_explained_there_too(table: ModuleType) -> None:
    """`from pyflink.datastream.connectors import PulsarSource` must not say less than the import of its module."""
    missing = [verdict.name for verdict in table.verdicts() if verdict.alias and verdict.status != "yes"]
    missing = [name for name in missing if not name.startswith(("pyflink.table.", "pyflink.util."))]
    packages = [
        (f"headwater{package.removeprefix('pyflink')}", name)
        for package, _, name in (each.rpartition(".") for each in missing)
    ]
    assert ("headwater.datastream.connectors", "PulsarSource") in packages
    assert not [each for each in packages if not explain_missing_name(*each)]


def test_a_reason_for_nothing_is_noticed(table: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    known = dict(table.gaps())
    gap = next(iter(known.values()))
    monkeypatch.setattr(table, "gaps", lambda: known | {"pyflink.datastream.DataStream": gap})
    assert table.stale_gaps(table.verdicts()) == ["pyflink.datastream.DataStream"]
