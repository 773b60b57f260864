"""What the routes need besides the request."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from headwater.server.cluster import Cluster, RunningJob, Submissions
from headwater.server.gate import Gate
from headwater.server.programs import ProgramFolder
from headwater.server.route import Route
from headwater.server.state_readers import StateReaders
from headwater.server.triggers import Triggers


@dataclass
class Services:
    """One per server. Handlers read it; only `triggers` and `programs` change."""

    cluster: Cluster
    gate: Gate
    triggers: Triggers = field(default_factory=Triggers)
    state_readers: StateReaders = field(default_factory=StateReaders)
    programs: ProgramFolder | None = None
    """Where uploaded programs are; None: this server takes none."""
    submissions: Submissions | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    """The server's own settings as text, secrets hidden."""
    leader: Callable[[], str | None] | None = None
    """Of a session server: None if it leads itself, else the address of the one that does, empty if nobody does."""
    log_file: str | None = None
    """Where the server's log goes, if it is a file."""
    max_content_bytes: int = 100 << 20
    routes: tuple[Route, ...] = ()
    """The table of the app, for its documentation."""

    async def open_jobs(self) -> list[RunningJob]:
        """Return the running jobs whose figures and logs routes without a job in their path may show.

        A job with a token of its own is among them only where the server has one, too: who asks has given that.
        """
        return [job for job in await self.cluster.running() if self.gate.token or not job.card.token_digest]
