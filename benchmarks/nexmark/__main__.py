"""Write Nexmark's tables as files: `python -m benchmarks.nexmark --events 1000000 --out DIR`."""

from __future__ import annotations

import argparse
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from benchmarks.nexmark.generator import Nexmark


def write(out: Path, events: int, files: int, kind: str, nexmark: Nexmark) -> dict[str, int]:
    """Write a folder per table with `files` files each. Return the number of rows of each."""
    rows = dict.fromkeys(("person", "auction", "bid"), 0)
    for number in range(files):
        first, last = events * number // files, events * (number + 1) // files
        for name, table in nexmark.tables(first, last).items():
            folder = out / name
            folder.mkdir(parents=True, exist_ok=True)
            path = folder / f"part-{number:05}.{kind}"
            if kind == "csv":
                pa.csv.write_csv(table, path, pa.csv.WriteOptions(include_header=False))
            else:
                pa.parquet.write_table(table, path)
            rows[name] += table.num_rows
    (out / "side_input").mkdir(exist_ok=True)
    words = "".join(f"{key},word-{key}\n" for key in range(100))
    (out / "side_input" / "words.csv").write_text(words, encoding="utf-8")
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--format", choices=("parquet", "csv"), default="parquet")
    parser.add_argument("--files", type=int, default=1)
    parser.add_argument("--rate", type=int, default=10_000, help="events per second of event time")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    made = write(options.out, options.events, options.files, options.format, Nexmark(options.rate, seed=options.seed))
    print(", ".join(f"{name}: {count}" for name, count in made.items()))


if __name__ == "__main__":
    main()
