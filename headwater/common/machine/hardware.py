"""How big this machine is."""

from __future__ import annotations

import os


def hardware() -> dict[str, int]:
    """Return cores that this process may use, and bytes of memory: all, and what could be had now (0: not known)."""
    sizes = {"MemTotal": 0, "MemAvailable": 0}
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            for line in file:
                name, _, rest = line.partition(":")
                if name in sizes:
                    sizes[name] = int(rest.split()[0]) * 1024
    except OSError:
        pass  # a system without /proc
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return {"cpuCores": cores, "physicalMemory": sizes["MemTotal"], "freeMemory": sizes["MemAvailable"]}
