"""`headwater run -m host:port program.py`: gives the program to a server, and waits for its job unless detached."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import uuid
from pathlib import Path

from headwater.cli import remote_jobs
from headwater.cli.run_arguments import RunArguments
from headwater.cli.usage import INTERRUPTED, UsageError
from headwater.common.errors import HeadwaterError
from headwater.server.client import RestClient


def submit(given: RunArguments) -> int:
    """Upload the program with its files and run it. Return 0 when it runs, or with its job's end."""
    assert given.server is not None
    client = remote_jobs.client_of(given.server, given.command)
    uploads: list[str] = []
    try:
        job_id = _start(client, given, uploads)
    finally:
        for upload in uploads:  # the job has copies of its own
            with contextlib.suppress(HeadwaterError):
                client.delete(f"/jars/{upload}")
    print(f"Job has been submitted with JobID {job_id}", flush=True)
    return 0 if given.detached else _wait(client, job_id)


def _start(client: RestClient, given: RunArguments, uploads: list[str]) -> str:
    """Upload, run, and return the job's id. `uploads` gets the ids of what was sent."""
    with tempfile.TemporaryDirectory(prefix="headwater-") as folder:
        required = [given.requirements] if given.requirements is not None else []
        for path in (given.program, *given.python_files, *required):
            uploads.append(_upload(client, path, Path(folder), given.command))
    program, *more = uploads
    body = {
        "programArgsList": given.arguments,
        "flinkConfiguration": given.settings.to_dict(),
        "jobId": uuid.uuid4().hex,  # if the answer gets lost, asking again is harmless
        "pythonFiles": more[: len(given.python_files)],
        **({"pythonRequirements": more[-1]} if required else {}),
    }
    return str(client.post(f"/jars/{program}/run", body)["jobid"])


def _wait(client: RestClient, job_id: str) -> int:
    try:
        state = remote_jobs.wait_for_end(client, job_id)
    except KeyboardInterrupt:
        print(f"headwater: job {job_id} goes on")
        return INTERRUPTED
    if state != "FINISHED":
        entries = client.get(f"/jobs/{job_id}/exceptions", maxExceptions=1)["exceptionHistory"]["entries"]
        failure = entries[0]["stacktrace"] if entries else ""
        raise HeadwaterError(f"job {job_id} has ended ({state})" + (f":\n{failure}" if failure else ""))
    details = client.get(f"/jobs/{job_id}")
    print("Program execution finished")
    print(f"Job with JobID {job_id} has finished.")
    print(f"Job Runtime: {details['duration']} ms")
    return 0


def _upload(client: RestClient, name: str, folder: Path, command: str) -> str:
    """Send a file, or a directory as a zip, and return its id."""
    path = Path(name)
    if path.is_dir():
        # A package is a directory in the zip; a folder of modules is its root.
        package = (path / "__init__.py").exists()
        root, base = (path.parent, path.name) if package else (path, ".")
        path = Path(shutil.make_archive(str(folder / f"{path.resolve().name}"), "zip", root, base))
    if not path.is_file():
        raise UsageError(f"{command}: cannot read '{name}': no such file")
    return client.upload(path)
