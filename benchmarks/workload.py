"""The input that every framework gets, and how a program tells the harness what it saw.

Imported inside the peers' environments too, so: the standard library only.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import uuid
from pathlib import Path
from typing import Any

FIRST_FACTOR, SECOND_FACTOR, MASK = 2654435761, 1103515245, 0xFFFFFFFF
"""The mix's constants: chosen so that no product leaves 63 bits (SQL would overflow) for i below 3 * 10**9."""

EMIT_EVERY = 1000
"""A key gives one output at every so many of its updates."""

GREP_WORDS = ("INFO ok", "DEBUG cache", "INFO served", "WARN slow", "INFO ok", "DEBUG gc", "INFO login", "ERROR disk")
GREP_NEEDLE = "ERROR"


def key_of(i: int, keys: int) -> int:
    """The key of record `i`: as good as random.

    One multiplication would do to spread the keys, but neighbours would then never share one, and a framework that
    keeps state per bundle of records (PyFlink) would find each key only once in a bundle.
    """
    mixed = i * FIRST_FACTOR & MASK
    mixed = (mixed ^ mixed >> 15) * SECOND_FACTOR & MASK
    return (mixed ^ mixed >> 13) % keys


def event_time_ms(i: int, half: int, per_second: float) -> int:
    """When record `i` happened, if `per_second` happen per second.

    Frameworks cut the numbers into two halves of `half` records and read them side by side: both begin at 0.
    """
    return int(i % half * 2000 // per_second)


def log_line(i: int) -> str:
    """Record `i` as a line of a log; one in eight holds the needle."""
    return f"2026-01-01T00:00:00Z host-{i % 97} request={i} {GREP_WORDS[i & 7]}"


class StampDir:
    """A directory in which processes that do not know each other leave times and process ids.

    Each stamp is a file of its own, so nothing is locked and a killed process loses nothing. Times are wall-clock
    seconds: all processes are on one machine.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = str(path)

    def stamp(self, event: str, **facts: Any) -> None:
        """Leave one stamp. A few dozen microseconds: call it once per task or epoch, not per record."""
        name = f"{event}-{os.getpid()}-{uuid.uuid4().hex}"
        pending = os.path.join(self.path, f".{name}")
        with open(pending, "w", encoding="utf-8") as file:
            json.dump({"at": time.time(), "pid": os.getpid(), **facts}, file)
        os.rename(pending, os.path.join(self.path, f"{name}.json"))

    def read(self, event: str) -> list[dict[str, Any]]:
        """All stamps of `event` so far, oldest first."""
        stamps = [json.loads(file.read_text(encoding="utf-8")) for file in Path(self.path).glob(f"{event}-*.json")]
        return sorted(stamps, key=lambda stamp: float(stamp["at"]))

    def seconds_between(self, first_event: str, last_event: str) -> float:
        """From the earliest `first_event` to the latest `last_event`."""
        return float(self.read(last_event)[-1]["at"]) - float(self.read(first_event)[0]["at"])


def report(**facts: Any) -> None:
    """Tell the harness a result. May be called again with a better one: the last line counts."""
    print("RESULT " + json.dumps(facts), flush=True)


def percentile(values: list[float], fraction: float) -> float:
    """The value below which `fraction` of `values` lie (nearest rank)."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(fraction * len(ordered)))]


def arguments(**defaults: str | int | float) -> argparse.Namespace:
    """Parse a program's command line: `--stamps DIR`, and one option per default, of the default's type."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--stamps", required=True)
    for name, default in defaults.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=type(default), default=default)
    return parser.parse_args()
