"""What the numbers were measured on."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

from benchmarks.harness.environments import Environment


def cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0))


def load() -> float:
    """Running processes, on average over the last minute."""
    return os.getloadavg()[0]


def describe(peers: tuple[Environment, ...]) -> dict[str, str]:
    """Machine, date and versions, in the order of the report."""
    facts = {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "cpu": _cpu_model(),
        "cores": str(cores()),
        "memory": _memory(),
        "os": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "java": _java(),
        "pyspark": metadata.version("pyspark"),
    }
    for peer in peers:
        for requirement in peer.requirements:
            name, _, version = requirement.partition("==")
            if version:
                facts[name] = version
    facts["load before the run"] = f"{load():.2f}"
    return facts


def _cpu_model() -> str:
    found = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    return found.group(1).strip() if found else platform.machine()


def _memory() -> str:
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return f"{pages / 2**30:.0f} GiB"


def _java() -> str:
    try:
        shown = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False).stderr
    except FileNotFoundError:
        return "none"
    return shown.splitlines()[0] if shown else "unknown"
