"""Reads the values of settings from text and from Python objects. Each reader raises ValueError saying what it expects.

The readers are what options are typed by (`config_option.py`), which add the key to the message.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from typing import Any

from headwater.common.time import Duration, Time, to_millis

_DURATION_UNITS_MS = {
    "ns": 1e-6,
    "nano": 1e-6,
    "nanosecond": 1e-6,
    "us": 1e-3,
    "µs": 1e-3,
    "micro": 1e-3,
    "microsecond": 1e-3,
    "": 1,
    "ms": 1,
    "milli": 1,
    "millisecond": 1,
    "s": 1_000,
    "sec": 1_000,
    "second": 1_000,
    "m": 60_000,
    "min": 60_000,
    "minute": 60_000,
    "h": 3_600_000,
    "hour": 3_600_000,
    "d": 86_400_000,
    "day": 86_400_000,
}
_MEMORY_UNITS = {"": 1, "b": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_NUMBER_AND_UNIT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-zµ]*)\s*", re.IGNORECASE)
IN_PROCESS = "in-process"
"""The master that is none: the job runs in the process that starts it, without Spark."""

_MASTER = re.compile(
    r"in-process|local|local\[(\*|[1-9]\d*)(\s*,\s*[1-9]\d*)?\]|local-cluster\[\s*\d+\s*,\s*\d+\s*,\s*\d+\s*\]|yarn|[a-z][a-z0-9+.-]*://\S+"
)


def read_text(raw: Any) -> str:
    if isinstance(raw, str):
        return raw
    raise ValueError("text")


def read_integer(raw: Any) -> int:
    if isinstance(raw, int) and not isinstance(raw, bool):
        return raw
    if isinstance(raw, str):
        try:
            return int(raw.strip().replace("_", ""))
        except ValueError:
            pass
    raise ValueError("a whole number")


def read_float(raw: Any) -> float:
    if isinstance(raw, (int, float)) and not isinstance(raw, bool):
        return float(raw)
    if isinstance(raw, str):
        try:
            return float(raw)
        except ValueError:
            pass
    raise ValueError("a number")


def read_boolean(raw: Any) -> bool:
    if isinstance(raw, bool):
        return raw
    if isinstance(raw, str) and raw.strip().lower() in ("true", "false"):
        return raw.strip().lower() == "true"
    raise ValueError("true or false")


def read_duration_ms(raw: Any) -> int:
    """Milliseconds of "10 s", "500ms" or "1.5 min"; a bare number is milliseconds, as in Flink."""
    if isinstance(raw, (Duration, Time, datetime.timedelta)) or (isinstance(raw, int) and not isinstance(raw, bool)):
        millis = to_millis(raw, minimum=None)
        if millis >= 0:
            return millis
    elif isinstance(raw, str) and (match := _NUMBER_AND_UNIT.fullmatch(raw)):
        unit = match[2].lower()
        factor = _DURATION_UNITS_MS.get(unit) or _DURATION_UNITS_MS.get(unit.removesuffix("s"))
        if factor is not None:
            return int(float(match[1]) * factor) if "." in match[1] or factor < 1 else int(match[1]) * int(factor)
    raise ValueError("a duration such as '500 ms', '10 s', '1 min', '2 h' or '1 d'")


def read_memory_bytes(raw: Any) -> int:
    """Bytes of "512m", "2 gb", "1 GiB"; a bare number is bytes. Units are powers of 1024, as in Flink and Spark."""
    if isinstance(raw, int) and not isinstance(raw, bool) and raw >= 0:
        return raw
    if isinstance(raw, str) and (match := _NUMBER_AND_UNIT.fullmatch(raw)):
        unit = match[2].lower()
        for suffix in ("ibytes", "bytes", "ib", "b", ""):
            factor = _MEMORY_UNITS.get(unit.removesuffix(suffix)) if unit.endswith(suffix) else None
            if factor is not None:
                return int(float(match[1]) * factor)
    raise ValueError("a memory size such as '512m' or '2g'")


def read_list(raw: Any) -> list[str]:
    """Texts separated by ';' or ','; empty ones are dropped."""
    if isinstance(raw, str):
        return [part.strip() for part in re.split("[;,]", raw) if part.strip()]
    if isinstance(raw, (list, tuple)) and all(isinstance(part, str) for part in raw):
        return list(raw)
    raise ValueError("texts separated by ';'")


def read_map(raw: Any) -> dict[str, str]:
    """Pairs as Flink writes them: "a:1,b:2"."""
    if isinstance(raw, dict):
        return {str(key): str(value) for key, value in raw.items()}
    if isinstance(raw, str):
        pairs = [part.partition(":") for part in raw.split(",") if part.strip()]
        if all(colon and key.strip() for key, colon, _ in pairs):
            return {key.strip(): value.strip() for key, _, value in pairs}
    raise ValueError("key:value pairs separated by commas")


def read_master(raw: Any) -> str:
    """The address of a Spark (whether somebody answers there is another question), or `IN_PROCESS`."""
    if isinstance(raw, str) and _MASTER.fullmatch(raw.strip()):
        return raw.strip()
    raise ValueError(
        "a Spark master such as 'local[*]', 'local[4]', 'local-cluster[2,1,1024]', 'spark://host:7077', 'yarn' or "
        f"'k8s://https://host:443'; or '{IN_PROCESS}', without Spark"
    )


def choice_reader(*choices: str, synonyms: dict[str, str] | None = None) -> Callable[[Any], str]:
    """A reader of one of `choices`; case, '-' and '_' do not matter. Enum members are read by their name."""
    known = {_plain(choice): choice for choice in choices}
    known |= {_plain(other): choice for other, choice in (synonyms or {}).items()}

    def read_choice(raw: Any) -> str:
        text = raw if isinstance(raw, str) else getattr(raw, "name", None)
        if isinstance(text, str) and _plain(text) in known:
            return known[_plain(text)]
        raise ValueError("one of " + ", ".join(choices))

    return read_choice


def _plain(text: str) -> str:
    return re.sub("[-_ ]", "", text).lower()
