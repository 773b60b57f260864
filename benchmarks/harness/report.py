"""Writes what was measured: `RESULTS.md` for people, `results.json` for everything else."""

from __future__ import annotations

import itertools
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.case import HEADWATER, NO_ENGINE, ONLY_WRITES, RESIDENT, SHUFFLE, Case, Lookup, Target
from benchmarks.harness.plot import Row, latency_plot
from benchmarks.harness.runner import Measurement
from benchmarks.latency.distribution import Histogram

Results = dict[str, list[Measurement]]
"""case name -> its measurements, in the order of the case"""

OWN_COLOURS = {
    HEADWATER: "#0f766e",
    RESIDENT: "#2563eb",
    SHUFFLE: "#7c3aed",
    NO_ENGINE: "#6b7280",
    ONLY_WRITES: "#9ca3af",
}
PEER_COLOURS = ("#d97706", "#b91c1c", "#a16207")


def lookup_in(results: Results) -> Lookup:
    """A function that finds one fact in `results`."""

    def look(case: str, contender: str, fact: str) -> float:
        for measurement in results.get(case, []):
            if measurement.contender == contender and measurement.measured:
                return float(measurement.facts[fact])
        raise KeyError((case, contender, fact))

    return look


def judge(targets: tuple[Target, ...], results: Results, *, quick: bool = False) -> list[dict[str, Any]]:
    """Each promise of a case that ran, with its value and what became of it. A quick run's sizes judge nothing."""
    look = lookup_in(results)
    verdicts = []
    for target in targets:
        if target.case not in results:
            continue
        try:
            value: float | None = target.value(look)
        except KeyError:
            value = None
        verdict = _verdict(target, value, quick)
        verdicts.append(
            {
                "target": target.text,
                "promised": ("≥ " if target.at_least else "≤ ") + target.shown_as.format(target.limit),
                "measured": "-" if value is None else target.shown_as.format(value),
                "value": value,
                "verdict": verdict,
            }
        )
    return verdicts


def _verdict(target: Target, value: float | None, quick: bool) -> str:
    if value is None:
        return "not measured"
    if quick:
        return "not judged"
    return "pass" if target.met(value) else "missed"


def write(
    folder: Path,
    machine: dict[str, str],
    cases: tuple[Case, ...],
    targets: tuple[Target, ...],
    results: Results,
    *,
    quick: bool = False,
) -> None:
    """Write both files into `folder`, and a drawing for each case that has one."""
    verdicts = judge(targets, results, quick=quick)
    text = render(machine, cases, verdicts, results, quick=quick)
    (folder / "RESULTS.md").write_text(text, encoding="utf-8")
    for case in cases:
        if rows := _plotted(case, results):
            drawing = latency_plot(case.title, rows, case.limits_ms)
            (folder / _plot_file(case)).write_text(drawing, encoding="utf-8")
    stored = {
        "machine": machine,
        "quick": quick,
        "targets": verdicts,
        "cases": {name: [asdict(measurement) for measurement in found] for name, found in results.items()},
    }
    (folder / "results.json").write_text(json.dumps(stored, indent=2) + "\n", encoding="utf-8")


def render(
    machine: dict[str, str], cases: tuple[Case, ...], verdicts: list[dict[str, Any]], results: Results, *, quick: bool
) -> str:
    """The report as Markdown."""
    lines = [
        "# Benchmark results",
        "",
        "Made by `make bench`; do not edit. All programs ran one after another on one machine, each in a process of",
        "its own; what each one measures, and what it leaves out, is said at the top of its file in `benchmarks/`.",
        "",
        *(["**A quick run: far smaller sizes than the titles say. The numbers mean nothing.**", ""] if quick else []),
        *_table(["machine", ""], [[name, value] for name, value in machine.items()]),
        "",
        "## Targets",
        "",
        *_table(
            ["target", "promised", "measured", ""],
            [[v["target"], v["promised"], v["measured"], _emphasised(v["verdict"])] for v in verdicts],
        ),
    ]
    for case in cases:
        if case.name in results:
            lines += ["", f"## {case.title}", "", *_case_table(case, results[case.name])]
            lines += _notes(results[case.name])
            if _plotted(case, results):
                lines += ["", f"![{case.title}: how the latencies are spread]({_plot_file(case)})"]
    return "\n".join(lines) + "\n"


def _case_table(case: Case, measurements: list[Measurement]) -> list[str]:
    ours = next((m.facts[case.metric] for m in measurements if m.contender == HEADWATER and m.measured), None)
    with_ratio = ours is not None and len(measurements) > 1
    header = ["", case.unit, *(["headwater / this"] if with_ratio else []), *(heading for _, heading in case.columns)]
    header += ["each run", "load before"]
    rows = []
    for measurement in measurements:
        if not measurement.measured:
            rows.append([measurement.contender, "no result"] + [""] * (len(header) - 2))
            continue
        value = float(measurement.facts[case.metric])
        row = [measurement.contender, _number(value)]
        if with_ratio and ours is not None:
            row.append(f"{ours / value:.2f}")
        row += [_number(measurement.facts.get(fact)) for fact, _ in case.columns]
        row.append(", ".join(_number(run) for run in measurement.all_runs))
        row.append(", ".join(f"{load:.1f}" for load in measurement.loads))
        rows.append(row)
    return _table(header, rows)


def _plot_file(case: Case) -> str:
    return f"{case.name}.svg"


def _plotted(case: Case, results: Results) -> list[Row]:
    """What to draw of a case: the contenders that reported a histogram."""
    peers = itertools.cycle(PEER_COLOURS)
    rows = []
    for measurement in results.get(case.name, []):
        if histogram := measurement.facts.get("histogram"):
            name, facts = measurement.contender, measurement.facts
            colour = OWN_COLOURS.get(name) or next(peers)
            rows.append(Row(name, colour, Histogram.decode(histogram), facts["median_ms"], facts["p99_ms"]))
    return rows


def _notes(measurements: list[Measurement]) -> list[str]:
    notes = []
    for measurement in measurements:
        if measurement.error:
            first = measurement.error.splitlines()[0]
            said = "; the number is of what it had done by then" if measurement.measured else ""
            notes.append(f"- {measurement.contender}: {first}{said}.")
    return ["", *notes] if notes else []


def _table(header: list[str], rows: list[list[str]]) -> list[str]:
    ruler = "|" + "---|" * len(header)
    return ["| " + " | ".join(header) + " |", ruler, *("| " + " | ".join(row) + " |" for row in rows)]


def _number(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, int) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def _emphasised(verdict: str) -> str:
    return verdict if verdict == "pass" else f"**{verdict}**"
