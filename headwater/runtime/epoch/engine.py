"""The contract between the coordinator and the engine that runs its epochs: Spark, or something else in tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from headwater.common.errors import HeadwaterError
from headwater.runtime.epoch.messages import Ack, EpochHeader, SourceTask


class EngineLostError(HeadwaterError):
    """Spark itself is gone. The job ends, and resumes from its checkpoint at the next start."""


class Engine(Protocol):
    """Runs epoch attempts of one job."""

    def run(self, header: EpochHeader, tasks: Sequence[SourceTask], dataframes: Mapping[int, Any]) -> list[Ack]: ...

    def cancel(self) -> None: ...

    def close(self) -> None: ...


class NothingToRun:
    """The engine of a job that is finished already: its last output may be committed again, but no epoch runs."""

    def run(self, header: EpochHeader, tasks: Sequence[SourceTask], dataframes: Mapping[int, Any]) -> list[Any]:
        raise AssertionError("a finished job runs no epoch")

    def cancel(self) -> None: ...

    def close(self) -> None: ...
