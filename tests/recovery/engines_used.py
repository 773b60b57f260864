"""Notes which engine ran each epoch: a driver of these tests installs it before it starts its job."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from headwater.runtime.epoch.messages import EpochHeader
from headwater.runtime.spark.epoch_job import SparkEngine
from headwater.runtime.spark.resident.engine import ResidentEngine
from tests.recovery.runs import MARK

FILE = "engines"


def install() -> None:
    """Append a line `<engine> <epoch>` to a file of the run for each attempt that completes."""
    file = Path(os.environ[MARK]) / FILE
    for name, engine in (("resident", ResidentEngine), ("shuffle", SparkEngine)):
        engine.run = _noted(engine.run, name, file)  # type: ignore[attr-defined,method-assign]


def _noted(run: Any, name: str, file: Path) -> Any:
    def noted(self: Any, header: EpochHeader, *arguments: Any) -> Any:
        acks = run(self, header, *arguments)
        with open(file, "a") as opened:
            opened.write(f"{name} {header.attempt.epoch}\n")
        return acks

    return noted


def engines_of(directory: Path) -> list[str]:
    """The engines of all attempts that completed, in order."""
    file = directory / FILE
    return [line.split()[0] for line in file.read_text().splitlines()] if file.exists() else []
