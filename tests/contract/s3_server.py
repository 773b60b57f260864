"""An S3 server on this machine (moto), with a switch."""

from __future__ import annotations

import contextlib
import logging
import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import boto3
from moto.s3.responses import S3Response
from moto.server import ThreadedMotoServer

from headwater.checkpoint.storage.base import StorageSpec

BUCKET = "checkpoints"


@dataclass
class S3Server:
    """Where it is, and how to reach it from any process."""

    host: str
    port: int
    _server: ThreadedMotoServer

    @property
    def options(self) -> dict[str, Any]:
        # Timeouts and retries of the client library itself are kept out of the tests' way.
        return {
            "key": "nobody",
            "secret": "nothing",
            "endpoint_url": f"http://{self.host}:{self.port}",
            "client_kwargs": {"region_name": "us-east-1"},
            "config_kwargs": {"retries": {"max_attempts": 0}},
        }

    def spec(self, **more: Any) -> StorageSpec:
        """A directory that nobody else uses."""
        return StorageSpec(f"s3://{BUCKET}/{uuid.uuid4().hex}", self.options, **more)

    def stop(self) -> None:
        self._server.stop()

    def start_again(self) -> None:
        """At the same address, with all that was there: moto keeps it in this process."""
        self._server = ThreadedMotoServer(ip_address=self.host, port=self.port, verbose=False)
        self._server.start()


_put_object = S3Response.put_object
_one_at_a_time = threading.Lock()


def _put_object_atomically(self: S3Response) -> Any:
    # moto looks (If-None-Match) and writes in two steps; S3 does it in one.
    with _one_at_a_time:
        return _put_object(self)


S3Response.put_object = _put_object_atomically  # type: ignore[method-assign]


@contextlib.contextmanager
def s3_server() -> Iterator[S3Server]:
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    running = S3Server(host, port, server)
    client = boto3.client(
        "s3", endpoint_url=f"http://{host}:{port}", aws_access_key_id="nobody", aws_secret_access_key="nothing",
        region_name="us-east-1",
    )  # fmt: skip
    client.create_bucket(Bucket=BUCKET)
    try:
        yield running
    finally:
        running.stop()
