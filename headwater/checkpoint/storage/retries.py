"""Retries calls to a remote storage after temporary errors: with growing pauses, and up to a time limit."""

from __future__ import annotations

import errno
import logging
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from headwater.common.errors import StorageError

log = logging.getLogger(__name__)

_T = TypeVar("_T")

_FINAL: Final = (
    FileNotFoundError,
    FileExistsError,
    PermissionError,
    IsADirectoryError,
    NotADirectoryError,
)
_PASSING_NUMBERS: Final = frozenset(
    {
        errno.EIO,
        errno.EBUSY,
        errno.EAGAIN,
        errno.EINTR,
        errno.ETIMEDOUT,
        errno.ECONNRESET,
        errno.ECONNREFUSED,
        errno.ECONNABORTED,
        errno.EPIPE,
        errno.ENETUNREACH,
        errno.ENETDOWN,
        errno.EHOSTUNREACH,
        errno.EREMOTEIO,
        None,  # an OSError of a client library, made from a text
    }
)
_PASSING_CLASSES: Final = frozenset(
    {
        "aiohttp.client_exceptions.ClientError",
        "botocore.exceptions.ConnectionError",
        "botocore.exceptions.HTTPClientError",
        "botocore.exceptions.IncompleteReadError",
        "botocore.exceptions.ResponseStreamingError",
        "botocore.parsers.ResponseParserError",
        "requests.exceptions.ConnectionError",
        "requests.exceptions.Timeout",
    }
)
"""Temporary errors of client libraries that are no OSErrors. By name, because the libraries are optional."""


def passes(error: BaseException) -> bool:
    """Return True if `error` may be temporary: the same call may succeed later."""
    if isinstance(error, _FINAL):
        return False
    if isinstance(error, ConnectionError | TimeoutError):
        return True
    if isinstance(error, OSError):
        return error.errno in _PASSING_NUMBERS
    return any(f"{kind.__module__}.{kind.__qualname__}" in _PASSING_CLASSES for kind in type(error).__mro__)


@dataclass(frozen=True)
class RetryPolicy:
    """How often to retry, and how long to pause. The default survives a storage that is away for half a minute."""

    attempts: int = 12
    first_delay_seconds: float = 0.2
    max_delay_seconds: float = 10.0
    sleep: Callable[[float], None] = time.sleep

    def call(self, what: str, url: str, call: Callable[[], _T]) -> _T:
        """Return the result of `call`. Raises StorageError, but passes on FileNotFoundError and FileExistsError."""
        for attempt in range(1, self.attempts + 1):
            try:
                return call()
            except (FileNotFoundError, FileExistsError):
                raise
            except Exception as error:
                if not passes(error):
                    raise StorageError(_text(what, url, attempt, error)) from error
                if attempt == self.attempts:
                    raise StorageError(_text(what, url, attempt, error)) from error
                delay = min(self.first_delay_seconds * 2 ** (attempt - 1), self.max_delay_seconds)
                # Half of the delay is random, so that many slots do not come back all at once.
                delay *= random.uniform(0.5, 1)
                log.warning("checkpoint storage: %s of %s failed (%r); again in %.1f s", what, url, error, delay)
                self.sleep(delay)
        raise AssertionError("a policy has at least one attempt")


def _text(what: str, url: str, attempts: int, error: Exception) -> str:
    tries = "once, and would fail again" if not passes(error) else f"{attempts} times"
    return (
        f"checkpoint storage: {what} of {url} failed {tries}: {type(error).__name__}: {error}; see that the store can "
        "be reached and that its credentials are valid on every host of the job. Options of the store are in "
        "headwater.storage.options, or the environment variable HEADWATER_STORAGE_OPTIONS"
    )
