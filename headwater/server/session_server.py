"""`headwater server`: many jobs, each in a driver of its own, behind one address."""

from __future__ import annotations

import dataclasses
import signal
import socket
import threading
from pathlib import Path
from typing import Any

from headwater.checkpoint.storage.base import is_remote, local_path
from headwater.common.config_options import (
    CHECKPOINT_DIRECTORY,
    DRIVER_RESTARTS,
    FIXED_JOB_ID,
    JOB_HISTORY_SIZE,
    RECOVERY_PATH,
    SERVER_STORAGE,
    STATE_DIRECTORY,
    UPLOAD_DIRECTORY,
    ConfigOption,
    option_of,
)
from headwater.common.configuration import Configuration
from headwater.common.errors import ConfigurationError
from headwater.common.trusted_directories import private_directory
from headwater.runtime.job.job_description import log_file
from headwater.runtime.job.run_directory import RunDirectory
from headwater.server.cluster import Cluster
from headwater.server.create_app import create_app
from headwater.server.embedded import EmbeddedServer
from headwater.server.jobs.session_jobs import SessionJobs
from headwater.server.jobs.supervisor import restart_policy
from headwater.server.rest_settings import RestSettings

_OF_THE_SERVER = ("rest.", "web.", "jobstore.", "high-availability.", "headwater.server.", "headwater.rest.")
_OF_ONE_JOB: tuple[ConfigOption[Any], ...] = (CHECKPOINT_DIRECTORY, RECOVERY_PATH, FIXED_JOB_ID)
"""Two jobs with the same one would take each other's state for theirs."""


class SessionServer:
    """Serves from `start` to `stop`. Its jobs outlive it."""

    def __init__(self, configuration: Configuration) -> None:
        storage = _storage(configuration)
        settings = RestSettings.of(configuration)
        if not configuration.is_set(UPLOAD_DIRECTORY):
            settings = dataclasses.replace(settings, upload_directory=storage / "programs")
        self._jobs = SessionJobs(
            storage,
            restart_policy(configuration.get(DRIVER_RESTARTS)),
            configuration.get(JOB_HISTORY_SIZE),
            job_defaults(configuration),
        )
        cluster = Cluster(RunDirectory(configuration.get(STATE_DIRECTORY)), history=self._jobs)
        app = create_app(
            settings,
            cluster,
            configuration=configuration,
            submissions=self._jobs,
            leader=self._jobs.leader,
            log_file=log_file(),
        )
        self._server = EmbeddedServer(settings, app)

    @property
    def address(self) -> str:
        """Where this machine finds the server."""
        return self._server.address

    def start(self) -> None:
        self._server.start()
        self._jobs.start(_reachable(self._server.address))

    def stop(self) -> None:
        """Close the port and let another server lead. The jobs go on."""
        self._jobs.stop()
        self._server.stop()


def serve(configuration: Configuration) -> None:
    """Run a session server until SIGTERM or SIGINT."""
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    server = SessionServer(configuration)
    server.start()
    print(f"headwater: server at {server.address}", flush=True)
    ended.wait()
    server.stop()


def job_defaults(configuration: Configuration) -> dict[str, str]:
    """The settings of a server that its jobs start with, as a cluster's are in Flink: all but those of the server.

    Raises ConfigurationError for what only one job can have.
    """
    for each in _OF_ONE_JOB:
        if configuration.is_set(each):
            raise ConfigurationError(
                f"{each.key} is a setting of one job, and a server has many: give it to headwater run. Without a "
                f"directory of its own a job keeps its checkpoints in {SERVER_STORAGE.key}"
            )
    chosen = Configuration(configuration)
    for key in configuration.key_set():
        option = option_of(key)
        if key.startswith(_OF_THE_SERVER) or (option is not None and not configuration.is_set(option)):
            chosen.remove_config(key)
    return chosen.to_dict()


def _storage(configuration: Configuration) -> Path:
    given = configuration.get(SERVER_STORAGE)
    if is_remote(given):
        raise ConfigurationError(
            f"{SERVER_STORAGE.key} is {given}; expected a directory that all servers mount: they keep logs and "
            "submissions in it. The jobs' checkpoints may be in a store, with execution.checkpointing.dir"
        )
    path = local_path(given)
    return private_directory(path, f"what is in it is run by this user; choose another {SERVER_STORAGE.key}")


def _reachable(address: str) -> str:
    """The address for other machines, if the server listens on all of this one's."""
    for wildcard in ("//0.0.0.0:", "//[::]:"):
        address = address.replace(wildcard, f"//{socket.gethostname()}:")
    return address
