"""The archive of Spark's classes is used if it is there, and is no reason to fail if it is of no use."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from headwater.runtime.spark.class_archive import QUIET, jvm_options, location


def test_without_an_archive_there_is_nothing_to_say(tmp_path: Path) -> None:
    assert jvm_options(tmp_path / "spark.jsa") == ()
    assert jvm_options(tmp_path) == ()


def test_an_archive_is_used(tmp_path: Path) -> None:
    archive = tmp_path / "spark.jsa"
    archive.touch()
    assert jvm_options(archive) == (f"-XX:SharedArchiveFile={archive}", *QUIET)


def test_it_belongs_to_the_environment_and_its_spark() -> None:
    assert location().is_relative_to(sys.prefix)
    assert location().name == f"spark-{pyspark.__version__}.jsa"


@pytest.mark.parametrize("content", [b"", b"no archive", b"\0" * 100_000], ids=["empty", "text", "zeroes"])
def test_a_jvm_that_cannot_use_it_starts_and_says_nothing(content: bytes, tmp_path: Path) -> None:
    java = shutil.which("java")
    if java is None:
        pytest.skip("there is no Java")
    archive = tmp_path / "spark.jsa"
    archive.write_bytes(content)
    with_it, without = (
        subprocess.run([java, "-Xshare:auto", *options, "-version"], capture_output=True, text=True, check=False)
        for options in (jvm_options(archive), ("-Xshare:off",))
    )
    assert with_it.returncode == 0
    assert with_it.stdout == ""
    assert with_it.stderr.splitlines()[:2] == without.stderr.splitlines()[:2]
