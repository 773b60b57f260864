"""Spark's sockets are where only this user can reach them, or ask for a secret."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from headwater.common.errors import ConfigurationError
from headwater.runtime.spark import worker_sockets
from headwater.runtime.spark.settings_file import options_for_spark_submit
from headwater.runtime.spark.worker_sockets import DIRECTORY, ENABLED, LONGEST, socket_settings


@pytest.fixture
def temporary(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    directory = tempfile.mkdtemp(prefix="hw", dir="/tmp")  # a socket's path must be short
    monkeypatch.setattr("tempfile.gettempdir", lambda: directory)
    worker_sockets._directory_of_this_process.cache_clear()
    yield Path(directory)
    worker_sockets._directory_of_this_process.cache_clear()
    shutil.rmtree(directory)


def test_on_this_host_they_are_in_a_private_directory(temporary: Path) -> None:
    before = os.umask(0)
    try:
        settings = socket_settings(True, {})
    finally:
        os.umask(before)
    directory = Path(settings[DIRECTORY])
    assert settings == {ENABLED: "true", DIRECTORY: str(directory)}
    assert directory.stat().st_mode & 0o777 == 0o700 == directory.parent.stat().st_mode & 0o777
    assert directory.stat().st_uid == os.geteuid()
    assert socket_settings(True, {}) == settings


def test_on_a_cluster_there_are_none() -> None:
    assert socket_settings(False, {}) == {ENABLED: "false"}
    assert socket_settings(False, {DIRECTORY: "/run/workers"}) == {ENABLED: "true"}
    with pytest.warns(UserWarning, match="without a secret"):
        assert socket_settings(False, {ENABLED: "true"}) == {ENABLED: "false"}


def test_where_the_path_would_be_too_long_there_are_none(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = temporary / ("x" * LONGEST)
    deep.mkdir()
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(deep))
    assert socket_settings(True, {}) == {ENABLED: "false"}


def test_a_given_directory_must_be_private(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    assert socket_settings(True, {DIRECTORY: str(tmp_path)}) == {ENABLED: "true"}
    tmp_path.chmod(0o770)
    with pytest.raises(ConfigurationError, match="chmod 700"):
        socket_settings(True, {DIRECTORY: str(tmp_path)})


def test_what_a_killed_process_left_is_removed_and_what_is_in_use_is_not(temporary: Path) -> None:
    program = (
        "from headwater.runtime.spark.worker_sockets import socket_settings, DIRECTORY\n"
        "print(socket_settings(True, {})[DIRECTORY], flush=True)\n"
        "input()\n"
    )
    environ = {**os.environ, "TMPDIR": str(temporary)}
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environ, text=True
    ) as other:
        assert other.stdout is not None
        used = Path(other.stdout.readline().strip())
        (used / "x.sock").touch()
        own = socket_settings(True, {})[DIRECTORY]
        assert used.is_dir() and used != Path(own)
        other.kill()
    worker_sockets._directory_of_this_process.cache_clear()
    newest = socket_settings(True, {})[DIRECTORY]
    assert not used.exists() and Path(own).is_dir() and Path(newest).is_dir()


def test_settings_are_in_a_file_that_only_this_user_can_read(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        option, path = options_for_spark_submit({"spark.a b": "x = y\\z\n#!é", "spark.empty": ""}, tmp_path)
    finally:
        os.umask(before)
    assert option == "--extra-properties-file"
    assert Path(path).stat().st_mode & 0o777 == 0o600
    assert Path(path).read_text("utf-8") == "spark.a\\ b=x\\ \\=\\ y\\\\z\\n\\#\\!é\nspark.empty=\n"
