"""What a process knows of itself, under names like those of Flink's metrics."""

from __future__ import annotations

import os
import platform
import resource
import sys
import threading
from typing import Any


def figures() -> dict[str, float]:
    """Metrics of this process."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    with open("/proc/self/statm", encoding="ascii") as file:
        resident = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return {
        "Status.Python.CPU.Time": int((usage.ru_utime + usage.ru_stime) * 1e9),
        "Status.Python.Memory.Resident": resident,
        "Status.Python.Memory.ResidentMax": usage.ru_maxrss * 1024,
        "Status.Python.Threads.Count": threading.active_count(),
        "Status.Python.FileDescriptor.Open": len(os.listdir("/proc/self/fd")),
    }


def environment() -> dict[str, Any]:
    """Flink's `/jobmanager/environment`; the "jvm" is this Python. No variables: they may hold secrets."""
    return {
        "jvm": {
            "version": f"{platform.python_implementation()} {platform.python_version()}",
            "arch": platform.machine(),
            "options": [],
        },
        "classpath": list(sys.path),
    }
