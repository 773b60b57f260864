"""What users implement to ask a service for each record, as in `pyflink.datastream.functions`."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from headwater.operators.functions.plain import Function


class AsyncFunction(Function):
    """Asks an outside service for each record, with many requests at once.

    A crash, or a failed epoch, repeats the requests of that epoch: their results are emitted exactly once, but the
    service sees some requests twice.
    """

    @abstractmethod
    async def async_invoke(self, value: Any) -> list[Any]:
        """Return the results for `value`. Runs in an event loop: must not block. Raising fails the job, or retries."""

    def timeout(self, value: Any) -> list[Any]:
        """Return the results for a record whose request took too long. Unless overridden, it fails the job."""
        raise TimeoutError(f"the asynchronous request for {value!r} timed out")
