"""What a PySpark worker says when it ends."""

from __future__ import annotations

import runpy
from importlib.machinery import ModuleSpec
from types import ModuleType

import pytest

from headwater.runtime.spark.quiet_worker import leave_quietly

DAEMON = """
import traceback

def end_with(error):
    try:
        raise error
    except BaseException:
        traceback.print_exc()
"""


def main_module(name: str) -> ModuleType:
    module = ModuleType("__main__")
    exec(DAEMON, vars(module))
    module.__spec__ = ModuleSpec(name, None)
    return module


@pytest.mark.parametrize("error", [BrokenPipeError(32, "Broken pipe"), ConnectionResetError(104, "reset")])
def test_a_worker_says_nothing_about_a_jvm_that_left(error: Exception, capsys: pytest.CaptureFixture[str]) -> None:
    daemon = main_module("pyspark.daemon")
    leave_quietly(daemon)
    daemon.end_with(error)
    assert capsys.readouterr().err == ""


def test_a_worker_shows_any_other_error(capsys: pytest.CaptureFixture[str]) -> None:
    daemon = main_module("pyspark.daemon")
    leave_quietly(daemon)
    daemon.end_with(ValueError("rubbish"))
    assert capsys.readouterr().err.endswith("ValueError: rubbish\n")


def test_another_main_module_keeps_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    program = main_module("program")
    leave_quietly(program)
    program.end_with(BrokenPipeError(32, "Broken pipe"))
    assert "BrokenPipeError" in capsys.readouterr().err


def test_pyspark_still_ends_its_workers_in_this_way() -> None:
    source = runpy.run_module("pyspark.daemon", run_name="a_look")["manager"]
    assert "traceback" in source.__code__.co_names and "print_exc" in source.__code__.co_names
