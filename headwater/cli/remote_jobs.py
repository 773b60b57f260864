"""Jobs of a server, on the command line (`-m host:port`): the same verbs, with the lines that Flink prints."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from headwater.cli.usage import FAILURE, Parser, UsageError, nearest
from headwater.common.config_options import REST_ADDRESS, REST_PORT, SERVER_TOKEN, SERVER_TOKEN_FILE, resolve
from headwater.common.configuration import Configuration
from headwater.common.errors import HeadwaterError
from headwater.server.client import RestClient, is_server_address

RUNNING = ("RUNNING", "RESTARTING", "CANCELLING", "FAILING", "RECONCILING")
SCHEDULED = ("CREATED", "INITIALIZING")
ENDED = ("FINISHED", "CANCELED", "FAILED")
LOCAL = "local"
"""What -m says for the jobs of this machine."""
_WAITING = "Waiting for response..."
_POLL_SECONDS = 0.2


def add_server(parser: Parser) -> None:
    """Add the option that names a server. Its value is None for the jobs of this machine."""
    parser.add_argument(
        "-m",
        "--jobmanager",
        metavar="HOST:PORT",
        type=lambda given: None if given == LOCAL else given,
        default=default_server(),
        help=f"a job of the server there, instead of one of this machine; {REST_ADDRESS.key} is the default, "
        f"'{LOCAL}' is this machine",
    )


def default_server() -> str | None:
    """Return host:port of the server that the settings name, if they do."""
    settings = resolve(Configuration())
    host = settings.get(REST_ADDRESS)
    return f"{host}:{settings.get(REST_PORT).partition('-')[0]}" if host else None


def client_of(address: str, command: str) -> RestClient:
    """Return a client. The token is a setting, so it stands in no command line."""
    if not is_server_address(address):
        raise UsageError(f"{command}: -m {address}: expected host:port, or https://host:port")
    settings = resolve(Configuration())
    token, file = settings.get(SERVER_TOKEN), settings.get(SERVER_TOKEN_FILE)
    if not token and file:
        try:
            with open(file, encoding="utf-8") as content:
                token = content.read().strip()
        except OSError as error:
            raise HeadwaterError(f"{SERVER_TOKEN_FILE.key}: cannot read {file}: {error.strerror}") from None
    return RestClient(address, token)


def find(client: RestClient, wanted: str) -> str:
    """Return the id of the job that `wanted` names: an id, the beginning of one, or a name."""
    jobs = client.get("/jobs/overview")["jobs"]
    named = [job for job in jobs if job["name"] == wanted]
    for found in (
        [job for job in jobs if job["jid"] == wanted],
        [job for job in named if job["state"] not in ENDED],
        named,
        [job for job in jobs if wanted and job["jid"].startswith(wanted)],
    ):
        if len(found) == 1:
            return str(found[0]["jid"])
        if found:
            shown = ", ".join(f"{job['jid']} '{job['name']}' ({job['state']})" for job in found)
            raise HeadwaterError(f"'{wanted}' means {len(found)} jobs: {shown}; give the id, or more of it")
    shown = ", ".join(f"{job['jid'][:12]} '{job['name']}'" for job in jobs) or "none"
    raise HeadwaterError(
        f"the server has no job '{wanted}'{nearest(wanted, [job['name'] for job in jobs]) or ';'} it has: {shown}"
    )


def list_jobs(client: RestClient, *, running: bool, scheduled: bool, everything: bool) -> int:
    """Print jobs in Flink's way. Without a choice: those that run, and those that are being started."""
    print(_WAITING)
    jobs = sorted(client.get("/jobs/overview")["jobs"], key=lambda job: int(job["start-time"]))
    if not (running or scheduled) or everything:
        running = scheduled = True
    if running:
        _section("Running/Restarting Jobs", [job for job in jobs if job["state"] in RUNNING], "No running jobs.")
    if scheduled:
        _section("Scheduled Jobs", [job for job in jobs if job["state"] in SCHEDULED], "No scheduled jobs.")
    if everything:
        _section("Terminated Jobs", [job for job in jobs if job["state"] in ENDED], "No terminated jobs.")
    return 0


def _section(title: str, jobs: Sequence[dict[str, Any]], none: str) -> None:
    if not jobs:
        print(none)
        return
    print(f" {title} ".center(62, "-"))
    for job in jobs:
        started = datetime.fromtimestamp(job["start-time"] / 1000).strftime("%d.%m.%Y %H:%M:%S")
        print(f"{started} : {job['jid']} : {job['name']} ({job['state']})")
    print("-" * 62)


def cancel(client: RestClient, wanted: str) -> int:
    job_id = find(client, wanted)
    print(f"Cancelling job {job_id}.", flush=True)
    client.patch(f"/jobs/{job_id}")
    state = wait_for_end(client, job_id)
    if state != "CANCELED":
        print(f"Job {job_id} has ended ({state}).")
        return 0 if state == "FINISHED" else FAILURE
    print(f"Cancelled job {job_id}.")
    return 0


def cancel_with_savepoint(client: RestClient, wanted: str, directory: str | None) -> int:
    job_id = find(client, wanted)
    print(cancelling_with_savepoint(job_id, directory), flush=True)
    body = {"cancel-job": True} | ({"target-directory": directory} if directory else {})
    trigger = client.post(f"/jobs/{job_id}/savepoints", body)["request-id"]
    path = client.wait(f"/jobs/{job_id}/savepoints", trigger)["location"]
    wait_for_end(client, job_id)
    print(f"Cancelled job {job_id}. Savepoint stored in {path}.")
    return 0


def cancelling_with_savepoint(job_id: str, directory: str | None) -> str:
    """What Flink's client prints before it asks."""
    where = directory or "default savepoint directory"
    return (
        'DEPRECATION WARNING: Cancelling a job with savepoint is deprecated. Use "stop" instead.\n'
        f"Cancelling job {job_id} with CANONICAL savepoint to {where}."
    )


def stop(client: RestClient, wanted: str, directory: str | None, *, drain: bool, detached: bool = False) -> int:
    job_id = find(client, wanted)
    print(stopping(job_id, drain, detached), flush=True)
    body = {"drain": drain} | ({"targetDirectory": directory} if directory else {})
    trigger = client.post(f"/jobs/{job_id}/stop", body)["request-id"]
    if detached:
        print(f"Successfully trigger stop-with-savepoint, triggerId: {trigger}")
        return 0
    print(f"Savepoint completed. Path: {client.wait(f'/jobs/{job_id}/stop', trigger)['location']}", flush=True)
    wait_for_end(client, job_id)
    return 0


def savepoint(client: RestClient, wanted: str, directory: str | None, *, detached: bool = False) -> int:
    job_id = find(client, wanted)
    print(triggering("savepoint", job_id, detached), flush=True)
    trigger = client.post(f"/jobs/{job_id}/savepoints", {"target-directory": directory} if directory else {})
    if detached:
        print(f"Successfully trigger manual savepoint, triggerId: {trigger['request-id']}")
        return 0
    path = client.wait(f"/jobs/{job_id}/savepoints", trigger["request-id"])["location"]
    print(savepoint_made(path))
    return 0


def savepoint_made(path: str) -> str:
    """What Flink's client prints when it has been told."""
    return f"Savepoint completed. Path: {path}\nYou can resume your program from this savepoint with the run command."


def stopping(job_id: str, drain: bool, detached: bool) -> str:
    """What Flink's client prints before it asks."""
    first = f'{"Draining" if drain else "Suspending"} job "{job_id}" with a CANONICAL savepoint.'
    return f"{first}\n{triggering('stop-with-savepoint', job_id, detached)}"


def triggering(what: str, job_id: str, detached: bool) -> str:
    """What Flink's client prints before it asks."""
    return (
        f"Triggering {what} in detached mode for job {job_id}."
        if detached
        else (f"Triggering {what} for job {job_id}.\n{_WAITING}")
    )


def checkpoint(client: RestClient, wanted: str) -> int:
    job_id = find(client, wanted)
    print(f"Triggering checkpoint for job {job_id}.\n{_WAITING}", flush=True)
    trigger = client.post(f"/jobs/{job_id}/checkpoints", {})["request-id"]
    number = client.wait(f"/jobs/{job_id}/checkpoints", trigger)["checkpointId"]
    print(f"Checkpoint(CONFIGURED) {number} for job {job_id} completed.")
    print("You can resume your program from this checkpoint with the run command.")
    return 0


def dispose(client: RestClient, path: str) -> int:
    print(f"Disposing savepoint '{path}'.\n{_WAITING}", flush=True)
    trigger = client.post("/savepoint-disposal", {"savepoint-path": path})["request-id"]
    client.wait("/savepoint-disposal", trigger)
    print(f"Savepoint '{path}' disposed.")
    return 0


def why(client: RestClient, wanted: str) -> list[dict[str, Any]]:
    """Return the causes that a job names."""
    causes: list[dict[str, Any]] = client.get(f"/jobs/{find(client, wanted)}/why")["causes"]
    return causes


def checkpoints(client: RestClient, wanted: str) -> list[dict[str, Any]]:
    """Return the last checkpoints of a job, in the words of Flink's REST, the oldest first."""
    history: list[dict[str, Any]] = client.get(f"/jobs/{find(client, wanted)}/checkpoints")["history"]
    return history[::-1]


def rescale(client: RestClient, wanted: str, parallelism: int) -> int:
    job_id = find(client, wanted)
    trigger = client.patch(f"/jobs/{job_id}/rescaling?parallelism={parallelism}")["request-id"]
    client.wait(f"/jobs/{job_id}/rescaling", trigger)
    print(f"Rescaled job {job_id}. Its new parallelism is {parallelism}.")
    return 0


def wait_for_end(client: RestClient, job_id: str) -> str:
    """Wait until the job has ended, and return how."""
    while True:
        state = str(client.get(f"/jobs/{job_id}/status")["status"])
        if state in ENDED:
            return state
        time.sleep(_POLL_SECONDS)
