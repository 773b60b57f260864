"""Puts a server's application together."""

from __future__ import annotations

from collections.abc import Callable

from headwater.common.config.sensitive_keys import shown_settings
from headwater.common.configuration import Configuration
from headwater.server.app import App
from headwater.server.cluster import Cluster, Submissions
from headwater.server.programs import ProgramFolder
from headwater.server.rest_settings import RestSettings
from headwater.server.routes import ROUTES
from headwater.server.services import Services


def create_app(
    settings: RestSettings,
    cluster: Cluster,
    *,
    configuration: Configuration | None = None,
    submissions: Submissions | None = None,
    leader: Callable[[], str | None] | None = None,
    log_file: str | None = None,
) -> App:
    """Return the application of a server: of one job (a cluster of `only` that one), or of a session server.

    Without `submissions` it takes no programs. If `leader` names another server, requests are sent there.
    `configuration` is what `/jobmanager/config` shows, secrets hidden.
    """
    return App(
        ROUTES,
        Services(
            cluster,
            settings.gate,
            programs=ProgramFolder(settings.upload_directory) if submissions is not None else None,
            submissions=submissions,
            settings=shown_settings(configuration) if configuration is not None else {},
            leader=leader,
            log_file=log_file,
            max_content_bytes=settings.max_content_bytes,
        ),
    )
