"""The parts of PyFlink that headwater does not have: not yet, or never, and why.

`gaps.toml` beside this file is the list. `docs/pyflink.md` shows it, and a test holds it against PyFlink's names.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_GAPS = Path(__file__).with_name("gaps.toml")


@dataclass(frozen=True)
class Gap:
    """A name of PyFlink that is missing here. `status` is "not yet" or "never"."""

    name: str
    status: str
    reason: str

    def explained(self, asked: str) -> str:
        """One line for somebody who asked for `asked`."""
        answer = "not yet" if self.status == "not yet" else "never"
        return f"headwater does not have {asked} ({answer}): {self.reason}"


@cache
def gaps() -> dict[str, Gap]:
    """All gaps by their full PyFlink name."""
    sections = tomllib.loads(_GAPS.read_text(encoding="utf-8"))
    found: dict[str, Gap] = {}
    for section, status in (("not_yet", "not yet"), ("never", "never")):
        for name, reason in sections.get(section, {}).items():
            found[name] = Gap(name, status, reason)
    return found


@cache
def _passed_on() -> dict[str, str]:
    """{name: module of PyFlink that has it}, for names of missing modules that PyFlink's packages pass on."""
    modules: dict[str, list[str]] = tomllib.loads(_GAPS.read_text(encoding="utf-8"))["passed_on"]
    return {name: module for module, names in modules.items() for name in names}


def gap_of(name: str) -> Gap | None:
    """Return the gap that covers a full PyFlink name: its own entry, or that of the nearest package around it."""
    known = gaps()
    parts = name.split(".")
    if (anywhere := known.get(f"*.{parts[-1]}")) is not None:
        return anywhere
    for length in range(len(parts), 1, -1):
        gap = known.get(".".join(parts[:length]))
        if gap is not None:
            return gap
    return None


def explain_missing_module(name: str) -> str:
    """For `import name`, where headwater has no such module."""
    gap = gap_of(name)
    if gap is not None:
        return gap.explained(name)
    return f"no module named {name!r}: neither headwater nor PyFlink 2.3 has it"


def explain_missing_name(module: str, name: str) -> str | None:
    """For `from module import name`, `module` being ours; None if nothing is known about the name."""
    pyflink_module = "pyflink" + module.removeprefix("headwater")
    gap = gaps().get(f"{pyflink_module}.{name}")
    if gap is None:  # imported from a package that passes on what one of its modules defines
        below = (known for key, known in gaps().items() if key.endswith(f".{name}") and key.startswith(pyflink_module))
        gap = next(below, None)
    if gap is None and name in _passed_on():
        gap = gap_of(_passed_on()[name])
    return None if gap is None else gap.explained(f"{pyflink_module}.{name}")
