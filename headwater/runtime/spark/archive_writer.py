"""Lets the class archive of this environment be written beside the first job that would have needed it.

The writer is a process of its own. It runs only where a core has nothing else to do, one at a time, and no longer than
`LIMIT_SECONDS`: a program that ends before it does not wait for it. The program after it starts faster.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import sys
from pathlib import Path

from headwater.runtime.spark import class_archive

LIMIT_SECONDS = 300

log = logging.getLogger(__name__)

_writers: list[subprocess.Popen[bytes]] = []
"""Kept, so that nobody complains about a process that still runs when its object goes."""


def start_writer(java: str, spark_home: Path) -> None:
    """Start a writer, unless there is an archive, no place for one, or this process has started one before.

    Called when the job's first epoch is over: its start has the machine for itself.
    """
    try:
        directory = class_archive.directory_to_write()
        if _writers or directory is None or class_archive.find(java, spark_home) is not None:
            return
        _writers.append(
            subprocess.Popen(
                [sys.executable, "-m", "headwater.runtime.spark.write_class_archive", "--background", str(directory)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                env={**_environment(), "JAVA_HOME": str(Path(java).resolve().parent.parent)},
            )
        )
    except OSError as error:
        log.debug("no class archive is written: %s", error)


def stay_behind() -> None:
    """Of the writer: give way to everything else, and end in time."""
    signal.alarm(LIMIT_SECONDS)  # the JVM ends with this process, and the slots with the JVM
    os.nice(19)
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


def _environment() -> dict[str, str]:
    """The program's environment, without what it says about the program's own jobs."""
    return {key: value for key, value in os.environ.items() if not key.startswith(("HEADWATER_", "PYSPARK_"))}
