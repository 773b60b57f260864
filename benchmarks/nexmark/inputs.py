"""The CSV files that both contenders read, made once and kept under `.bench`. The standard library only."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def csv_files(maker: str, events: int, files: int, rate: int = 10_000) -> Path:
    """The folder with tables of `events`, so many per second of event time. `maker` is a Python that has headwater."""
    folder = ROOT / ".bench" / "nexmark" / f"{events}-at-{rate}-in-{files}"
    if not (folder / "complete").exists():
        command = [maker, "-m", "benchmarks.nexmark", "--events", str(events), "--rate", str(rate)]
        subprocess.run(
            [*command, "--format", "csv", "--files", str(files), "--out", str(folder)],
            cwd=ROOT,
            check=True,
            stdout=subprocess.DEVNULL,
        )
        (folder / "complete").touch()
    return folder
