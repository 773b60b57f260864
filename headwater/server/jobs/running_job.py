"""A job whose driver runs on this host: how to ask it something."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headwater.common.errors import HeadwaterError
from headwater.runtime.job.control_client import ask
from headwater.runtime.job.run_directory import JobCard, RunDirectory
from headwater.server.jobs.job_folder import Start


@dataclass(frozen=True)
class RunningJob:
    """The card of a running job, and where it was found."""

    directory: RunDirectory
    card: JobCard

    @classmethod
    def of(cls, start: Start) -> RunningJob | None:
        """Return the job that the driver of `start` runs right now; None if it runs none. Of several, the newest."""
        if start.driver is None or start.job is None:
            return None
        if not start.job.state_dir:
            raise HeadwaterError("the job cannot be operated: its control socket could not be opened, as its log says")
        directory = RunDirectory(start.job.state_dir)
        found = [card for card in directory.cards() if (card.pid, card.host) == (start.driver.pid, start.driver.host)]
        return cls(directory, found[-1]) if found else None

    def ask(self, verb: str, /, within_seconds: float | None = None, **arguments: Any) -> Any:
        return ask(self.directory, self.card, verb, within_seconds=within_seconds, **arguments)
