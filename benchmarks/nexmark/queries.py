"""The queries of `examples/nexmark`, and the tables over CSV files, for both contenders: the standard library only."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "nexmark"
MEASURED = (
    "q0", "q1", "q2", "q3", "q4", "q5", "q7", "q8", "q9", "q11", "q14", "q15", "q16", "q17", "q18", "q19", "q20",
    "q22",
)  # fmt: skip
"""Not q6 and q13, which Flink does not run, q12, whose windows wait for the clock, q10 and q21, much as q0 and q22."""


def query(name: str) -> str:
    return (FOLDER / f"{name}.sql").read_text(encoding="utf-8").strip().rstrip(";")


def tables(path: str, scheme: str = "") -> list[str]:
    """The statements that make the tables over CSV files under `path`."""
    text = (FOLDER / "tables.sql").read_text(encoding="utf-8").replace("nexmark-data", f"{scheme}{path}")
    lines = [line for line in text.replace("'parquet'", "'csv'").splitlines() if not line.startswith("--")]
    found = [each.strip() for each in "\n".join(lines).split(";\n") if each.strip().rstrip(";")]
    return [each.rstrip(";") for each in found if "CREATE TABLE" in each]
