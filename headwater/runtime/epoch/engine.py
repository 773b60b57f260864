"""The contract between the coordinator and the engine that runs its epochs: Spark, or something else in tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from headwater.common.errors import HeadwaterError
from headwater.runtime.epoch.messages import Ack, EpochHeader, SourceTask
from headwater.runtime.epoch.wakeup import Wakeup


class EngineLostError(HeadwaterError):
    """Spark itself is gone. The job ends, and resumes from its checkpoint at the next start."""


class Engine(Protocol):
    """Runs epoch attempts of one job."""

    def run(self, header: EpochHeader, tasks: Sequence[SourceTask], dataframes: Mapping[int, Any]) -> list[Ack]: ...

    @property
    def watches(self) -> bool:
        """True: `wait` reports input of sources that can wait, as the last epoch left them."""
        ...

    def wait(self, seconds: float, wakeup: Wakeup) -> bool:
        """Wait until `wakeup` is set or a source may have input, but not longer than `seconds`.

        Return True if a source may have input: then the job asks its sources at once. Called between two epochs.
        """
        ...

    def checkpoint_completed(self, token: str) -> None:
        """The checkpoint with this token (an attempt's id) is complete. Called between two epochs; must not raise."""
        ...

    def cancel(self) -> None: ...

    def close(self) -> None: ...


class NothingToRun:
    """The engine of a job that is finished already: its last output may be committed again, but no epoch runs."""

    watches = False

    def run(self, header: EpochHeader, tasks: Sequence[SourceTask], dataframes: Mapping[int, Any]) -> list[Any]:
        raise AssertionError("a finished job runs no epoch")

    def wait(self, seconds: float, wakeup: Wakeup) -> bool:
        raise AssertionError("a finished job waits for nothing")

    def checkpoint_completed(self, token: str) -> None: ...

    def cancel(self) -> None: ...

    def close(self) -> None: ...
