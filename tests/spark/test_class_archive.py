"""The class archive that is written beside a job."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from pyspark.find_spark_home import _find_spark_home

from headwater.runtime.spark import archive_writer, class_archive
from headwater.runtime.spark.gateway import class_path


@pytest.mark.timeout(300)
def test_two_jobs_without_an_archive_write_one_which_a_jvm_can_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java = shutil.which("java")
    assert java is not None
    home = Path(_find_spark_home())
    place = tmp_path / "archives"
    monkeypatch.setattr(class_archive, "directories", lambda: iter([place]))
    writers = []
    for _ in range(2):  # two processes: each starts one writer
        started: list[subprocess.Popen[bytes]] = []
        monkeypatch.setattr(archive_writer, "_writers", started)
        archive_writer.start_writer(java, home)
        archive_writer.start_writer(java, home)
        writers += started
    assert len(writers) == 2
    assert [writer.wait(240) for writer in writers] == [0, 0]
    archive = class_archive.find(java, home)
    assert archive is not None
    assert sorted(path.name for path in place.iterdir()) == sorted([archive.name, "writer.lock"])
    used = subprocess.run(
        [java, "-Xshare:on", *class_archive.jvm_options(archive), "-cp", class_path(home), "-version"], check=False
    )
    assert used.returncode == 0
