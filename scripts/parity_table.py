"""Compares headwater's public names and signatures with PyFlink's, and writes `docs/pyflink.md`.

PyFlink's are in `tests/parity/pyflink_api.txt` (`make parity` takes them from the package); what headwater lacks must
have a reason in `headwater/compat/gaps.toml`. With --check nothing is written: differences are errors.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
import tomllib
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "scripts")]

from parity_api import shown_parameters  # noqa: E402

from headwater.compat.missing_modules import gap_of, gaps  # noqa: E402
from headwater.compat.pyflink_imports import passed_on  # noqa: E402

API = ROOT / "tests" / "parity" / "pyflink_api.txt"
GAPS = ROOT / "headwater" / "compat" / "gaps.toml"
PAGE = ROOT / "docs" / "pyflink.md"
INTRODUCTION = ROOT / "scripts" / "parity_introduction.md"
LINE = re.compile(r"^(?P<name>[\w.]+?)(?P<parameters>\(.*\))?(?: -> (?P<home>[\w.]+))?$")
MISSING = object()


@dataclass(frozen=True)
class Verdict:
    """What became of one line of PyFlink's API."""

    name: str
    status: str  # yes | not yet | never | UNEXPLAINED
    note: str = ""
    alias: bool = False


@cache
def different() -> dict[str, str]:
    """Signatures that differ on purpose, and why."""
    found: dict[str, str] = tomllib.loads(GAPS.read_text(encoding="utf-8")).get("different", {})
    return found


def judge(line: str) -> Verdict:
    match = LINE.match(line)
    assert match is not None, line
    name, parameters = match["name"], match["parameters"]
    alias = match["home"] is not None
    found = find_ours(name)
    if found is MISSING:
        gap = gap_of(name) or (gap_of(match["home"]) if alias else None)
        if gap is None:
            return Verdict(name, "UNEXPLAINED", "missing", alias)
        return Verdict(name, gap.status, gap.reason, alias)
    if parameters is not None and (problem := signature_problem(found, parameters)):
        reason = reason_for_difference(name)
        return Verdict(name, "yes", reason) if reason else Verdict(name, "UNEXPLAINED", problem)
    return Verdict(name, "yes", "", alias)


def reason_for_difference(name: str) -> str | None:
    parts = name.split(".")
    for length in range(len(parts), 2, -1):
        if (reason := different().get(".".join(parts[:length]))) is not None:
            return reason
    return None


def find_ours(name: str) -> Any:
    """The object of the same path here, or MISSING."""
    parts = ["headwater", *name.split(".")[1:]]
    for length in range(len(parts), 0, -1):
        try:
            value: Any = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for part in parts[length:]:
            value = _member(value, part)
            if value is MISSING:
                return MISSING
        return value
    return MISSING


def _member(owner: Any, name: str) -> Any:
    if inspect.isclass(owner):
        found = inspect.getattr_static(owner, name, MISSING)
        return found.__func__ if isinstance(found, staticmethod | classmethod) else found
    found = getattr(owner, name, MISSING)
    if found is MISSING and inspect.ismodule(owner):
        return passed_on(owner.__name__, name) or MISSING
    return found


def signature_problem(ours: Any, parameters: str) -> str | None:
    """Why a call that fits PyFlink's parameters may not fit ours; None if it fits."""
    if inspect.isclass(ours) or not callable(ours):
        return None
    theirs = _split(parameters)
    try:
        found = _split(shown_parameters(ours))
    except (TypeError, ValueError):
        return None  # a slot wrapper, such as the __init__ of a class without one
    if found[:1] in (["cls"], ["self"]):
        found = found[1:]
    if found in (["*args", "**kwargs"], ["*args"]) and not theirs:
        return None
    fits = len(found) >= len(theirs) and all(_fits(mine, other) for mine, other in zip(found, theirs, strict=False))
    if fits and all("=" in extra or "*" in extra for extra in found[len(theirs) :]):
        return None
    return f"PyFlink {parameters}, here ({', '.join(found)})"


def _fits(ours: str, theirs: str) -> bool:
    """The same name, and the same default where PyFlink has one; ours may have one where PyFlink has none."""
    return ours == theirs or ("=" not in theirs and ours.partition("=")[0] == theirs)


def _split(parameters: str) -> list[str]:
    inside = parameters[1:-1]
    return [part.strip() for part in re.split(r",\s(?=[\w*])", inside)] if inside else []


def verdicts() -> list[Verdict]:
    return [judge(line) for line in API.read_text(encoding="utf-8").splitlines()]


def stale_gaps(found: list[Verdict]) -> list[str]:
    """Entries of gaps.toml that explain nothing (any more)."""
    missing = {verdict.name for verdict in found if verdict.status != "yes"}
    all_names = {verdict.name for verdict in found}
    stale = [name for name in gaps() if not any(_covers(name, other) for other in missing)]
    return stale + [name for name in different() if name not in all_names]


def _covers(gap: str, name: str) -> bool:
    if gap.startswith("*."):
        return name.endswith(gap[1:])
    return name == gap or name.startswith(f"{gap}.")


def page(found: list[Verdict]) -> str:
    own = [verdict for verdict in found if not verdict.alias]
    parts = [INTRODUCTION.read_text(encoding="utf-8"), "## The names\n", summary(own)]
    explained = Counter((verdict.status, covering(verdict)) for verdict in own if verdict.status != "yes")
    for status in ("not yet", "never"):
        rows = [(gap, count) for (kind, gap), count in explained.items() if kind == status]
        if rows:
            parts.append(f"\n### {status.capitalize()}\n\n| name of PyFlink | names | reason |\n|---|---:|---|")
            for gap, count in sorted(rows):
                parts.append(f"| `{gap}` | {count} | {gaps()[gap].reason} |")
    parts.append("\n### Other parameters\n\n| name | difference |\n|---|---|")
    for name, reason in sorted(different().items()):
        parts.append(f"| `{name}` | {reason} |")
    parts.append("\n### By class\n\n| class or function | names | yes | not yet | never |\n|---|---:|---:|---:|---:|")
    parts += by_class(own)
    return "\n".join(parts) + "\n"


def covering(verdict: Verdict) -> str:
    gap = gap_of(verdict.name)
    return gap.name if gap is not None else verdict.name


def summary(found: list[Verdict]) -> str:
    rows = ["| part | names | yes | not yet | never |", "|---|---:|---:|---:|---:|"]
    groups: dict[str, list[Verdict]] = {}
    for verdict in found:
        groups.setdefault(".".join(verdict.name.split(".")[:2]), []).append(verdict)
    for group, members in sorted(groups.items()):
        rows.append(f"| `{group}` | {_counts(members)} |")
    return "\n".join(rows)


def by_class(found: list[Verdict]) -> list[str]:
    """One row per class or function of the parts that are not missing as a whole."""
    groups: dict[str, list[Verdict]] = {}
    for verdict in found:
        parts = verdict.name.split(".")
        owner = next((index for index, part in enumerate(parts) if part[:1].isupper()), len(parts) - 1)
        key = ".".join(parts[: owner + 1])
        if key.count(".") > 1:
            groups.setdefault(key, []).append(verdict)
    return [
        f"| `{name}` | {_counts(members)} |"
        for name, members in sorted(groups.items())
        if any(verdict.status == "yes" for verdict in members) and not is_module(name)
    ]


def is_module(name: str) -> bool:
    return inspect.ismodule(find_ours(name))


def _counts(found: list[Verdict]) -> str:
    counts = Counter(verdict.status for verdict in found)
    return f"{len(found)} | {counts['yes']} | {counts['not yet'] or ''} | {counts['never'] or ''}"


def main(arguments: list[str]) -> int:
    found = verdicts()
    problems = [f"{verdict.name}: {verdict.note}" for verdict in found if verdict.status == "UNEXPLAINED"]
    problems += [f"{name}: in gaps.toml, but nothing is missing there" for name in stale_gaps(found)]
    for problem in problems:
        print(problem, file=sys.stderr)
    if problems:
        print(f"{len(problems)} problems: add what is missing, or a reason in {GAPS.name}", file=sys.stderr)
        return 1
    if arguments == ["--check"]:
        if PAGE.is_file() and PAGE.read_text(encoding="utf-8") == page(found):
            return 0
        print(f"{PAGE.relative_to(ROOT)} is not current: run scripts/parity_table.py", file=sys.stderr)
        return 1
    PAGE.write_text(page(found), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
