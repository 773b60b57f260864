"""`make demo LIVE=1`: the same job without an end, for a look at the dashboard and at the commands."""

from __future__ import annotations

import tempfile
from pathlib import Path

from rich.console import Console

from headwater.demo.run import CANCEL_S, DemoSettings, start
from headwater.server.job_dashboard import serve_job

LIVE_RATE = 5_000.0
"""Payments per second: enough to see something, and the machine is still yours."""


def run_live(settings: DemoSettings, console: Console) -> None:
    """Run until Ctrl-C, or until somebody stops or cancels the job. Raises what the job raised."""
    rate = "as fast as it goes" if settings.rate_per_second is None else f"{settings.rate_per_second:,.0f} per second"
    console.print(f"Card payments without an end, {rate}. Ctrl-C ends it.", highlight=False)
    with tempfile.TemporaryDirectory(prefix="headwater-demo-") as directory:
        client, configuration = start(settings, Path(directory))
        result = client.get_job_execution_result()
        try:
            serve_job(client, configuration, lambda text: _tell(console, text))
            result.result()
            console.print("The job has ended.")
        except KeyboardInterrupt:
            console.print("\nCancelling the job.")
        finally:
            client.cancel().result(CANCEL_S)  # the directory goes away: nobody may write to it


def _tell(console: Console, text: str) -> None:
    console.print(f"{text[0].upper()}{text[1:]}", style="bold", highlight=False, soft_wrap=True)
    console.print(
        "In another terminal: headwater list, headwater top 'headwater demo', headwater why 'headwater demo'",
        highlight=False,
        soft_wrap=True,
    )
