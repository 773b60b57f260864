"""Where Spark's classes are, loaded and verified once and mapped into each JVM after that (class data sharing).

`write_class_archive.py` writes the archive. With it the driver's JVM starts with half the work. The JVM itself checks
that the archive was made by the same Java from the same jars, and starts as ever if not: an archive can be old, but
not wrong.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pyspark

QUIET = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off")
"""Otherwise a JVM that cannot use an archive says so on standard output, among the program's own lines."""


def location() -> Path:
    """Where the archive is, or would be: in this environment, whose jars it is made from."""
    return Path(sys.prefix) / "share" / "headwater" / f"spark-{pyspark.__version__}.jsa"


def jvm_options(archive: Path) -> tuple[str, ...]:
    """What makes a JVM use `archive`, if there is one."""
    return (f"-XX:SharedArchiveFile={archive}", *QUIET) if archive.is_file() else ()
