"""The archive of Spark's classes is used if it is there and ours, and is no reason to fail if it is of no use."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

from headwater.runtime.spark import archive_writer, class_archive
from headwater.runtime.spark.class_archive import QUIET, directories, directory_to_write, find, jvm_options, stem
from headwater.runtime.spark.write_class_archive import DRAFT, only_writer


@pytest.fixture
def java(tmp_path: Path) -> str:
    program = tmp_path / "jdk" / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.touch()
    (tmp_path / "jdk" / "release").write_text('JAVA_VERSION="17.0.1"')
    return str(program)


@pytest.fixture
def spark(tmp_path: Path) -> Path:
    (tmp_path / "spark" / "jars").mkdir(parents=True)
    return tmp_path / "spark"


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """This environment's; the user's caches are in `caches`."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "venv"))
    place = tmp_path / "venv" / "share" / "headwater"
    place.mkdir(parents=True, mode=0o755)
    return place


def put(directory: Path, name: str, content: bytes = b"1234") -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    archive = directory / f"{name}-{len(content)}.jsa"
    archive.write_bytes(content)
    archive.chmod(0o444)
    return archive


def test_without_an_archive_there_is_nothing_to_say(java: str, spark: Path) -> None:
    assert find(java, spark) is None
    assert jvm_options(None) == ()


def test_an_archive_is_used(java: str, spark: Path, directory: Path) -> None:
    archive = put(directory, stem(java, spark))
    assert find(java, spark) == archive
    assert jvm_options(archive) == (f"-XX:SharedArchiveFile={archive}", "-XX:+VerifySharedSpaces", *QUIET)


def test_it_belongs_to_one_spark_and_one_java(java: str, spark: Path, directory: Path) -> None:
    put(directory, stem(java, spark))
    assert f"spark-{pyspark.__version__}-" in stem(java, spark)
    os.utime(spark / "jars", (1, 1))  # installed again
    assert find(java, spark) is None
    put(directory, stem(java, spark))
    assert find(java, spark) is not None
    Path(java).parent.with_name("release").write_text('JAVA_VERSION="17.0.2"')
    assert find(java, spark) is None


def test_half_an_archive_is_not_used(java: str, spark: Path, directory: Path) -> None:
    archive = put(directory, stem(java, spark))
    archive.chmod(0o644)
    archive.write_bytes(b"12")
    assert find(java, spark) is None


@pytest.mark.parametrize("mode", [0o664, 0o646])
def test_one_that_others_could_have_written_is_not_used(java: str, spark: Path, directory: Path, mode: int) -> None:
    archive = put(directory, stem(java, spark))
    archive.chmod(mode)
    assert find(java, spark) is None


def test_nor_one_in_a_directory_of_others(java: str, spark: Path, directory: Path, tmp_path: Path) -> None:
    put(directory, stem(java, spark))
    directory.chmod(0o777)
    assert find(java, spark) is None
    assert directory_to_write() == tmp_path / "caches" / "headwater"


def test_nor_a_link_to_one(java: str, spark: Path, directory: Path, tmp_path: Path) -> None:
    target = put(tmp_path, "elsewhere")
    (directory / f"{stem(java, spark)}-4.jsa").symlink_to(target)
    assert find(java, spark) is None


def test_where_the_environment_cannot_be_written_the_users_caches_take_it(
    java: str, spark: Path, directory: Path, tmp_path: Path
) -> None:
    assert directory_to_write() == directory
    directory.rmdir()
    directory.write_text("not a directory")
    chosen = directory_to_write()
    assert chosen == tmp_path / "caches" / "headwater"
    assert chosen.stat().st_mode & 0o777 == 0o700
    archive = put(chosen, stem(java, spark))
    assert find(java, spark) == archive


def test_a_systems_own_python_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    assert list(directories()) == [tmp_path / "caches" / "headwater"]


def test_without_any_place_there_is_no_archive(monkeypatch: pytest.MonkeyPatch, directory: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
    directory.chmod(0o777)
    assert directory_to_write() is None


def test_a_new_archive_takes_the_place_of_older_ones_of_the_same_java_and_spark(
    java: str, spark: Path, directory: Path
) -> None:
    old = put(directory, stem(java, spark))
    os.utime(spark / "jars", (1, 1))
    new = put(directory, stem(java, spark))
    put(directory, "spark-4.3.0-12345678-12345678")
    assert list(class_archive.outdated(directory, java, spark, new)) == [old]


def test_one_writer_at_a_time_which_clears_up_after_one_that_was_killed(directory: Path) -> None:
    (directory / f"{DRAFT}killed").mkdir()
    with only_writer(directory) as alone, only_writer(directory) as second:
        assert alone and not second
        assert list(directory.glob(f"{DRAFT}*")) == []
    with only_writer(directory) as again:
        assert again


@pytest.fixture
def no_writers(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[object]]:
    started: list[object] = []
    monkeypatch.setattr(archive_writer, "_writers", started)
    yield started


def test_nothing_is_written_where_there_is_an_archive_or_no_place_for_one(
    java: str, spark: Path, directory: Path, monkeypatch: pytest.MonkeyPatch, no_writers: list[object]
) -> None:
    archive = put(directory, stem(java, spark))
    archive_writer.start_writer(java, spark)
    archive.unlink()
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
    directory.chmod(0o777)
    archive_writer.start_writer(java, spark)
    assert no_writers == []


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
