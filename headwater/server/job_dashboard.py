"""Job mode: a job that runs in this process serves itself, from soon after its first epoch to its end."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Final

from headwater.common.config_options import REST_ENABLED, STATE_DIRECTORY
from headwater.common.configuration import Configuration
from headwater.common.errors import HeadwaterError
from headwater.runtime.job.handle import LocalJobClient
from headwater.runtime.job.run_directory import RunDirectory

SETTLED_SECONDS: Final = 2.0
"""A job that ends sooner after its first epoch opens no port."""
_POLL_SECONDS: Final = 0.2


def _to_stderr(text: str) -> None:
    print(f"headwater: {text}", file=sys.stderr, flush=True)


def serve_job(
    client: LocalJobClient, configuration: Configuration, announce: Callable[[str], None] = _to_stderr
) -> None:
    """Serve the job beside it, unless the settings say no. Returns at once, and nothing here can fail the job.

    `announce` is told where the dashboard is, or why there is none; another thread calls it.
    """
    if configuration.is_set(REST_ENABLED) and not configuration.get(REST_ENABLED):
        return
    threading.Thread(target=_serve, args=(client, configuration, announce), name="dashboard", daemon=True).start()


def _serve(client: LocalJobClient, configuration: Configuration, announce: Callable[[str], None]) -> None:
    ended = threading.Event()
    client.get_job_execution_result().add_done_callback(lambda _: ended.set())
    while client.progress()["epoch"] < 0:
        if ended.wait(_POLL_SECONDS):
            return
    if ended.wait(SETTLED_SECONDS):
        return
    # Imported here: it takes a while, and the job's start must not wait for it.
    from headwater.server.cluster import Cluster
    from headwater.server.create_app import create_app
    from headwater.server.embedded import EmbeddedServer
    from headwater.server.rest_settings import RestSettings

    try:
        settings = RestSettings.of(configuration)
        cluster = Cluster(RunDirectory(configuration.get(STATE_DIRECTORY)), only=str(client.get_job_id()))
        server = EmbeddedServer(settings, create_app(settings, cluster, configuration=configuration))
        server.start()
    except HeadwaterError as error:
        announce(f"no dashboard: {error}")
        return
    announce(f"dashboard at {server.address}")
    ended.wait()
    server.stop()
