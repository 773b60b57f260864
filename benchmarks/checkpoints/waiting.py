"""Waiting for a running job."""

from __future__ import annotations

import time
from collections.abc import Callable

from headwater.common import JobClient


def wait_until(client: JobClient, condition: Callable[[], bool]) -> None:
    """Return when `condition` holds. Raises what the job failed with, if it ends before."""
    while not condition():
        if client.get_job_execution_result().done():
            client.get_job_execution_result().result()
            raise RuntimeError("the job has ended; expected it to go on")
        time.sleep(0.01)
