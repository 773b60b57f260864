"""`import pyflink` gives headwater: the same modules, and clear words about what is missing."""

from __future__ import annotations

import importlib
import pickle
import subprocess
import sys
from collections.abc import Iterator

import cloudpickle
import pytest

from headwater.compat import missing_modules, pyflink_imports


@pytest.fixture(autouse=True)
def mapped() -> Iterator[None]:
    pyflink_imports.install()
    yield
    pyflink_imports.uninstall()


@pytest.mark.parametrize(
    "path", ["", ".common", ".datastream", ".datastream.connectors.file_system", ".metrics.metricbase"]
)
def test_a_module_is_ours_under_another_name(path: str) -> None:
    theirs, ours = importlib.import_module(f"pyflink{path}"), importlib.import_module(f"headwater{path}")
    assert theirs is ours
    assert ours.__name__ == f"headwater{path}"
    assert ours.__spec__ is not None and ours.__spec__.name == f"headwater{path}"


def test_classes_are_pickled_under_our_name() -> None:
    from pyflink.common import Row

    assert b"pyflink" not in pickle.dumps(Row(1, 2))
    assert b"pyflink.common" not in cloudpickle.dumps(lambda: Row(1, 2))


def test_packages_pass_on_what_pyflinks_do() -> None:
    """PyFlink sets these when it is imported; its documentation imports them from here."""
    from pyflink.common import CsvRowSerializationSchema, JsonRowDeserializationSchema
    from pyflink.datastream.connectors import FileSink, FileSource, NumberSequenceSource

    from headwater.datastream.connectors import file_system, number_seq
    from headwater.datastream.formats import csv, json

    assert JsonRowDeserializationSchema is json.JsonRowDeserializationSchema
    assert CsvRowSerializationSchema is csv.CsvRowSerializationSchema
    assert (FileSource, FileSink) == (file_system.FileSource, file_system.FileSink)
    assert NumberSequenceSource is number_seq.NumberSequenceSource


def test_installing_twice_is_installing_once() -> None:
    pyflink_imports.install()
    pyflink_imports.uninstall()
    assert not pyflink_imports.is_installed()
    with pytest.raises(ImportError):
        importlib.import_module("pyflink.datastream")


@pytest.mark.parametrize(
    ("module", "answer"),
    [
        ("pyflink.table.module", "headwater does not have pyflink.table.module (not yet): "),
        ("pyflink.java_gateway", "headwater does not have pyflink.java_gateway (never): "),
        (
            "pyflink.datastream.connectors.pulsar",
            "headwater does not have pyflink.datastream.connectors.pulsar (never): ",
        ),
        ("pyflink.datastraem", "no module named 'pyflink.datastraem': neither headwater nor PyFlink 2.3 has it"),
    ],
)
def test_a_missing_module_is_explained(module: str, answer: str) -> None:
    with pytest.raises(ModuleNotFoundError) as raised:
        importlib.import_module(module)
    assert str(raised.value).startswith(answer)
    assert module.startswith(raised.value.name or "nothing")


def test_a_missing_name_is_explained() -> None:
    with pytest.raises(
        ImportError, match=r"does not have pyflink\.datastream\.connectors\.file_system\.StreamingFileSink"
    ):
        exec("from pyflink.datastream.connectors.file_system import StreamingFileSink", {})
    with pytest.raises(ImportError, match=r"connectors\.PulsarSource \(never\): a Java connector; env\.from_dataframe"):
        exec("from pyflink.datastream.connectors import PulsarSource", {})
    with pytest.raises(ImportError, match=r"HashMapStateBackend \(never\): .*set state\.backend\.type"):
        exec("from pyflink.datastream import HashMapStateBackend", {})
    with pytest.raises(ImportError, match="cannot import name 'NoSuchThing'"):
        exec("from pyflink.datastream import NoSuchThing", {})


def test_modules_still_say_no_to_questions() -> None:
    module = importlib.import_module("pyflink.datastream")
    assert not hasattr(module, "no_such_thing")
    assert getattr(module, "__wrapped__", None) is None


def test_every_reason_says_something() -> None:
    for gap in missing_modules.gaps().values():
        assert gap.status in ("not yet", "never")
        assert len(gap.reason) > 15 and not gap.reason.endswith("."), gap.name


def test_another_process_maps_as_the_driver_does() -> None:
    from headwater.runtime.main_module import capture_main, install_main  # noqa: F401

    captured = capture_main()
    code = (
        "import pickle, sys; from headwater.runtime.main_module import install_main; "
        "install_main(sys.stdin.buffer.read()); import pyflink.datastream; print(pyflink.datastream.__name__)"
    )
    done = subprocess.run([sys.executable, "-c", code], input=captured, capture_output=True, check=True)
    assert done.stdout == b"headwater.datastream\n"
    pyflink_imports.uninstall()
    done = subprocess.run([sys.executable, "-c", code], input=capture_main(), capture_output=True, check=False)
    assert b"ModuleNotFoundError" in done.stderr
