"""The archive of Spark's classes, loaded and verified once, which each JVM then maps into memory (class data sharing).

`write_class_archive.py` writes the archive. With it the driver's JVM starts with half the work. The JVM itself checks
that the archive was made by the same Java from the same jars, and starts as ever if not. What it does not survive is
half an archive, so an archive has its length in its name and is used only if it has that length.

An archive is code: it is used only if nobody else could have written it.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pyspark
import xxhash

QUIET = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off")
"""Without these, a JVM that cannot use an archive says so on standard output, among the program's own output."""

_NAME = re.compile(r"(?P<stem>.+)-(?P<length>\d+)\.jsa")


def jvm_options(archive: Path | None) -> tuple[str, ...]:
    """What makes a JVM use `archive`, if there is one and its content is as it was written."""
    return () if archive is None else (f"-XX:SharedArchiveFile={archive}", "-XX:+VerifySharedSpaces", *QUIET)


def find(java: str, spark_home: Path) -> Path | None:
    """The archive for this Java and this Spark, if somebody whom we trust has written one."""
    trusted = {os.getuid(), 0, spark_home.stat().st_uid}
    for directory in directories():
        if _only_for(directory, trusted):
            for path in directory.glob(f"{stem(java, spark_home)}-*.jsa"):
                if _is_whole(path) and _only_for(path, trusted):
                    return path
    return None


def directory_to_write() -> Path | None:
    """Where this user can put an archive: in the environment whose jars it is made from, else among the user's caches.

    None if there is no place where only this user can write.
    """
    for directory in directories():
        try:
            directory.mkdir(mode=0o755 if directory.is_relative_to(sys.prefix) else 0o700, parents=True, exist_ok=True)
        except OSError:
            continue
        if _only_for(directory, {os.getuid()}) and os.access(directory, os.W_OK):
            return directory
    return None


def directories() -> Iterator[Path]:
    """Where archives are, the first choice first. A system's own Python is not ours to add to."""
    if sys.prefix != sys.base_prefix:
        yield Path(sys.prefix) / "share" / "headwater"
    caches = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    if os.path.isabs(caches):
        yield Path(caches) / "headwater"


def stem(java: str, spark_home: Path) -> str:
    """The name of an archive, without its length: this Spark, where it and Java are, and which they are."""
    program = Path(java).resolve()
    release = program.parent.parent / "release"
    which = (
        release.read_bytes() if release.is_file() else program.stat().st_mtime_ns,
        (spark_home / "jars").stat().st_mtime_ns,
    )
    return f"spark-{pyspark.__version__}-{_place(program, spark_home)}-{xxhash.xxh32_hexdigest(repr(which).encode())}"


def outdated(directory: Path, java: str, spark_home: Path, kept: Path) -> Iterator[Path]:
    """Archives in `directory` that `kept` replaces: of the same place, but of an earlier Java or Spark."""
    for path in directory.glob(f"spark-*-{_place(Path(java).resolve(), spark_home)}-*.jsa"):
        if path != kept:
            yield path


def _place(program: Path, spark_home: Path) -> str:
    return xxhash.xxh32_hexdigest(f"{program}\n{spark_home}".encode())


def _is_whole(path: Path) -> bool:
    found = _NAME.fullmatch(path.name)
    return found is not None and path.is_file() and path.stat().st_size == int(found["length"])


def _only_for(path: Path, owners: set[int]) -> bool:
    """Whether `path` is there, belongs to one of `owners`, and nobody but its owner can write to it."""
    try:
        status = path.lstat()
    except OSError:
        return False
    return not stat.S_ISLNK(status.st_mode) and status.st_uid in owners and not status.st_mode & 0o022
