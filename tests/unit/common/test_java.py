"""The Java check, in Python and in shell, against executables that only pretend to be Java."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from headwater.common.errors import ConfigurationError
from headwater.common.machine.java import require_java

SCRIPT = Path(__file__).resolve().parents[3] / "scripts" / "check-java.sh"
HINT = "Install e.g. openjdk-17-jre-headless and set JAVA_HOME"

OPENJDK_17 = 'openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime Environment (build 17.0.15+6)'
ORACLE_8 = 'java version "1.8.0_392"\nJava(TM) SE Runtime Environment (build 1.8.0_392-b08)'
EARLY_ACCESS = 'openjdk version "22-ea" 2024-03-19'
WITH_OPTIONS = f"Picked up JAVA_TOOL_OPTIONS: -Xmx1g\n{OPENJDK_17}"


def fake_java(home: Path, says: str, exit_code: int = 0) -> Path:
    """A home directory whose bin/java prints `says` on standard error, as Java does."""
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\nprintf '%s\\n' {shlex.quote(says)} >&2\nexit {exit_code}\n")
    java.chmod(0o755)
    return java


@pytest.mark.parametrize("says", [OPENJDK_17, EARLY_ACCESS, WITH_OPTIONS])
def test_java_home_is_taken_first(tmp_path: Path, says: str) -> None:
    java = fake_java(tmp_path / "home", says)
    other = fake_java(tmp_path / "other", ORACLE_8)
    assert require_java({"JAVA_HOME": str(tmp_path / "home"), "PATH": str(other.parent)}) == str(java)


def test_without_java_home_the_path_is_searched(tmp_path: Path) -> None:
    java = fake_java(tmp_path, OPENJDK_17)
    assert require_java({"PATH": f"/nonexistent:{java.parent}"}) == str(java)


def error_of(environ: dict[str, str]) -> str:
    with pytest.raises(ConfigurationError) as caught:
        require_java(environ)
    return str(caught.value)


def test_none(tmp_path: Path) -> None:
    assert error_of({"PATH": str(tmp_path)}) == f"headwater needs Java 17 or newer: found none. {HINT}"


def test_too_old(tmp_path: Path) -> None:
    java = fake_java(tmp_path, ORACLE_8)
    text = error_of({"JAVA_HOME": str(tmp_path)})
    assert text == f"headwater needs Java 17 or newer: found 1.8.0_392 at {java}. {HINT}"


def test_java_home_without_java(tmp_path: Path) -> None:
    assert f"JAVA_HOME is '{tmp_path}', which has no bin/java. {HINT}" in error_of({"JAVA_HOME": str(tmp_path)})


def test_something_else_called_java(tmp_path: Path) -> None:
    fake_java(tmp_path, "The operation couldn't be completed. Unable to locate a Java Runtime.", exit_code=1)
    text = error_of({"JAVA_HOME": str(tmp_path)})
    assert "names no version" in text
    assert "\n" not in text


def test_a_file_that_cannot_run(tmp_path: Path) -> None:
    java = fake_java(tmp_path, OPENJDK_17)
    java.write_bytes(b"\x7fELF, but no more")
    text = error_of({"JAVA_HOME": str(tmp_path)})
    assert "does not run" in text
    assert "\n" not in text


@pytest.mark.parametrize(("says", "expected"), [(OPENJDK_17, 0), (EARLY_ACCESS, 0), (WITH_OPTIONS, 0), (ORACLE_8, 1)])
def test_the_shell_script_agrees(tmp_path: Path, says: str, expected: int) -> None:
    fake_java(tmp_path, says)
    environ = {"PATH": os.environ["PATH"], "JAVA_HOME": str(tmp_path)}
    ended = subprocess.run(["sh", str(SCRIPT)], env=environ, capture_output=True, text=True, check=False)
    assert ended.returncode == expected
    if expected:
        assert ended.stderr.strip() == error_of(environ)


def test_the_shell_script_agrees_on_a_home_without_java(tmp_path: Path) -> None:
    environ = {"PATH": os.environ["PATH"], "JAVA_HOME": str(tmp_path)}
    ended = subprocess.run(["sh", str(SCRIPT)], env=environ, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr.strip()) == (1, error_of(environ))
