"""What the driver tells those who want to read state: the operators, where their slots are, and how to be let in."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from headwater.common.ids import Place
from headwater.common.query_error import QueryError, QueryProblem
from headwater.runtime.job.coordinator import Coordinator
from headwater.runtime.job.series_archives import SeriesArchives
from headwater.runtime.slot.leases import LEASE_SECONDS, Leases
from headwater.runtime.slot.protocol import query_secret
from headwater.runtime.slot.query.answers import Session

INTEREST_SECONDS = 60.0
"""Leases are renewed in the background until nobody has asked for so long."""


@dataclass(frozen=True)
class StateAccess:
    """How the state of a job's slots is reached: through sockets with a secret, or in this process."""

    secret: bytes | None = None
    session: Callable[[Place], Session | None] = lambda place: None


class StateDirectory:
    """Of one plan of a running job; a rescaled job gets another. Any thread may ask."""

    def __init__(self, coordinator: Coordinator, access: StateAccess) -> None:
        self._coordinator = coordinator
        self._access = access
        self._leases = Leases(access.secret) if access.secret is not None else None
        self._asked = time.monotonic()
        self._asking = threading.Lock()
        self._renewing: threading.Thread | None = None
        self._closed = threading.Event()
        self.archives = SeriesArchives(coordinator)

    def locate(self) -> dict[str, Any]:
        """Return the operators with keyed state, and the slots that may be asked right now."""
        coordinator = self._coordinator
        plan, book = coordinator.plan, dict(coordinator.partitions.book)
        ready = self._ready(book)
        operators = [
            {"uid": operator.uid, "name": operator.name, "stage": stage.index, "parallelism": operator.parallelism}
            for stage in plan.stages
            for operator in stage.operators
            if operator.keyed and operator.needs_slot
        ]
        slots = [
            {
                "stage": place.stage,
                "partition": place.partition,
                "host": address.host,
                "port": address.query_port,
                "path": address.query_path,
                "incarnation": address.incarnation,
                "ready": place in ready,
            }
            for place, address in sorted(book.items())
        ]
        return {
            "job_id": coordinator.job_id,
            "max_parallelism": plan.max_parallelism,
            "operators": operators,
            "slots": slots,
            "secret": None if self._access.secret is None else query_secret(self._access.secret).hex(),
        }

    def ask(self, place: Place, request: dict[str, Any]) -> dict[str, Any]:
        """Ask a slot that lives in this process. Raises `QueryError`."""
        session = self._access.session(place)
        if session is None:
            raise QueryError(QueryProblem.RESTORING, f"partition {place.partition} of stage {place.stage} has no slot")
        with self._asking:
            return session.answer(request)

    def _ready(self, book: dict[Place, Any]) -> set[Place]:
        if self._leases is None:
            return set(book)
        self._asked = time.monotonic()
        if self._renewing is None or not self._renewing.is_alive():
            self._renewing = threading.Thread(target=self._renew_on, name="leases", daemon=True)
            self._renewing.start()
        return self._leases.renew(book)

    def _renew_on(self) -> None:
        assert self._leases is not None
        while time.monotonic() - self._asked < INTEREST_SECONDS and not self._closed.wait(LEASE_SECONDS / 4):
            self._leases.renew(dict(self._coordinator.partitions.book), patient=True)

    def close(self) -> None:
        self._closed.set()
        self.archives.close()
        if self._leases is not None:
            self._leases.close()
