"""Writes the class archive of this environment (see `class_archive.py`):

    python -m headwater.runtime.spark.write_class_archive

A small job runs, and the classes that it used are written beside the packages of this environment. `make test` does
that first; for everybody else the first job has it done in the background (`archive_writer.py`).
"""

from __future__ import annotations

import contextlib
import fcntl
import io
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from pyspark import SparkContext
from pyspark.find_spark_home import _find_spark_home

from headwater.common import Configuration
from headwater.common.errors import ConfigurationError, HeadwaterError
from headwater.common.machine.java import require_java
from headwater.datastream import StreamExecutionEnvironment
from headwater.runtime.spark import class_archive, session
from headwater.runtime.spark.archive_writer import stay_behind
from headwater.runtime.spark.gateway import class_path

DRAFT = ".draft-"
"""How the directory begins in which an archive is made."""


def build(directory: Path) -> Path:
    """Write an archive into `directory` and return it. Needs a process without Spark, and ends its JVM."""
    java, home = require_java(), Path(_find_spark_home())
    if SparkContext._active_spark_context is not None:
        raise ConfigurationError("Spark runs in this process already; make the class archive in one of its own")
    stem = class_archive.stem(java, home)
    with tempfile.TemporaryDirectory(prefix=DRAFT, dir=directory) as draft:
        written = Path(draft) / f"{stem}.jsa"
        _run_a_job((f"-XX:ArchiveClassesAtExit={written}", *class_archive.QUIET), draft)
        _end_jvm()
        if not written.exists() or not _is_usable(java, written):
            raise ConfigurationError(f"the JVM ({java}) wrote no usable class archive to {directory}")
        archive = directory / f"{stem}-{written.stat().st_size}.jsa"
        os.replace(written, archive)
    for other in class_archive.outdated(directory, java, home, archive):
        other.unlink(missing_ok=True)
    return archive


@contextlib.contextmanager
def only_writer(directory: Path) -> Iterator[bool]:
    """Whether nobody else writes an archive there. What a writer that was killed left is removed."""
    with open(directory / "writer.lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        for left in directory.glob(f"{DRAFT}*"):
            shutil.rmtree(left, ignore_errors=True)
        yield True


def _run_a_job(jvm_options: tuple[str, ...], directory: str) -> None:
    """Run a job with two stages, slots, a shuffle and checkpoints: it uses what nearly every job needs of Spark."""
    conf = {
        "headwater.master": "local[2]",
        "spark.driver.extraJavaOptions": " ".join((session.jvm_options("off"), *jvm_options)),
        "execution.checkpointing.dir": str(Path(directory) / "checkpoints"),
        "headwater.state.dir": directory,  # `headwater list` is about the user's jobs
    }
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(conf)).set_parallelism(2)
    counts = env.from_collection(range(100)).key_by(lambda number: number % 3).reduce(lambda left, right: left + right)
    counts.print()
    with contextlib.redirect_stdout(io.StringIO()):
        env.execute("class archive")


def _is_usable(java: str, archive: Path) -> bool:
    """Return True if a JVM can use the archive. A partial archive (the disk was full) makes a JVM crash."""
    options = ["-Xshare:on", f"-XX:SharedArchiveFile={archive}", "-XX:ErrorFile=/dev/null"]
    command = [java, *options, "-cp", class_path(_find_spark_home()), "-version"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def _end_jvm() -> None:
    process = session.jvm_process()
    assert process is not None and process.stdin is not None
    context = SparkContext._active_spark_context
    assert context is not None
    context.stop()
    process.stdin.close()
    process.wait()


def main(arguments: Sequence[str]) -> int:
    """With `--background DIRECTORY`: give way to everything else, and write only if nobody has."""
    background = arguments[:1] == ["--background"]
    if background:
        stay_behind()
    directory = Path(arguments[1]) if background else class_archive.directory_to_write()
    try:
        if directory is None:
            raise ConfigurationError("there is no directory for it that only this user can write to")
        with only_writer(directory) as alone:
            if not alone or (background and any(directory.glob(f"{_stem()}-*.jsa"))):
                return 0
            archive = build(directory)
    except (HeadwaterError, OSError) as error:
        print(f"headwater: no class archive, Spark starts more slowly: {error}", file=sys.stderr)
        return 1
    print(f"{archive}: {archive.stat().st_size >> 20} MiB; Spark's JVM starts faster from now on")
    return 0


def _stem() -> str:
    return class_archive.stem(require_java(), Path(_find_spark_home()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
