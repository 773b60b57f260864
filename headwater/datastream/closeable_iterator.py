"""The results of a job, while it runs."""

from __future__ import annotations

from typing import Any, Self

from headwater.common.job_client import JobClient
from headwater.datastream.connectors.collect_sink import CollectedResults


class CloseableIterator:
    """Iterates over the records of a stream as their epochs are committed; raises the job's error after the last one.

    Closing it (it is a context manager) cancels the job, if it still runs, and waits until it has ended.
    """

    def __init__(self, client: JobClient, results: CollectedResults) -> None:
        self._client = client
        self._results = results
        self._batch: list[Any] = []
        self._next_in_batch = 0
        self._closed = False
        # The committer says when it is done, but only the client knows of a job that failed before.
        client.get_job_execution_result().add_done_callback(lambda future: results.finish(future.exception()))

    def get_job_client(self) -> JobClient:
        """The handle on the job that makes the results."""
        return self._client

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        return self.next()

    def next(self) -> Any:
        """Wait for the next record. Raises StopIteration at the end."""
        while self._next_in_batch >= len(self._batch):
            if self._closed:
                raise StopIteration
            batch = self._results.next_batch()
            if batch is None:
                raise StopIteration
            self._batch, self._next_in_batch = batch, 0
        self._next_in_batch += 1
        return self._batch[self._next_in_batch - 1]

    def has_next(self, timeout_seconds: float | None = None) -> bool:
        """Wait for the next record without taking it. False at the end, or after `timeout_seconds` without one."""
        while self._next_in_batch >= len(self._batch):
            batch = None if self._closed else self._results.next_batch(timeout_seconds)
            if not batch:
                return False
            self._batch, self._next_in_batch = batch, 0
        return True

    def close(self) -> None:
        """Stop the job, if it runs, and drop unread results. May be called again."""
        if self._closed:
            return
        self._closed = True
        self._batch, self._next_in_batch = [], 0
        try:
            if not self._client.get_job_execution_result().done():
                self._client.cancel().result()
        finally:
            self._results.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
