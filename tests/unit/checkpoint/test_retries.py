"""What passes is tried again, with growing pauses and not for ever; what does not is not."""

from __future__ import annotations

import errno
from collections.abc import Callable

import pytest
from botocore.exceptions import ConnectTimeoutError, EndpointConnectionError, NoCredentialsError, ParamValidationError

from headwater.checkpoint.storage.base import StorageSpec
from headwater.checkpoint.storage.fsspec import FsspecStorage
from headwater.checkpoint.storage.retries import RetryPolicy, passes
from headwater.common.errors import StorageError


@pytest.mark.parametrize(
    "error",
    [
        ConnectionResetError(),
        TimeoutError(),
        OSError(errno.EBUSY, "Please reduce your request rate"),
        OSError(errno.EREMOTEIO, "We encountered an internal error"),
        OSError("a text of a client library"),
        EndpointConnectionError(endpoint_url="http://x"),
        ConnectTimeoutError(endpoint_url="http://x"),
    ],
)
def test_errors_that_pass(error: Exception) -> None:
    assert passes(error)


@pytest.mark.parametrize(
    "error",
    [
        FileNotFoundError(),
        PermissionError("Access Denied"),
        OSError(errno.EINVAL, "The specified bucket is not valid"),
        OSError(errno.ENOSPC, "No space left on device"),
        ValueError("a bug"),
        NoCredentialsError(),
        ParamValidationError(report="wrong"),
    ],
)
def test_errors_that_stay(error: Exception) -> None:
    assert not passes(error)


def fails(times: int, error: Exception) -> tuple[Callable[[], str], list[int]]:
    calls: list[int] = []

    def call() -> str:
        calls.append(1)
        if len(calls) <= times:
            raise error
        return "done"

    return call, calls


def test_pauses_grow_are_spread_and_end() -> None:
    pauses: list[float] = []
    policy = RetryPolicy(sleep=pauses.append)
    call, calls = fails(100, ConnectionResetError("gone"))
    with pytest.raises(StorageError, match=r"write of s3://b/x failed 12 times: ConnectionResetError: gone; see that"):
        policy.call("write", "s3://b/x", call)
    assert len(calls) == 12
    nominal = [0.2 * 2**n for n in range(6)] + [10] * 5
    assert len(pauses) == len(nominal)
    assert all(full / 2 <= pause <= full for pause, full in zip(pauses, nominal, strict=True))
    assert sum(nominal) / 2 > 30  # even with the shortest pauses: a store that is away for half a minute


def test_it_ends_with_the_first_success() -> None:
    call, calls = fails(3, TimeoutError())
    assert RetryPolicy(sleep=lambda seconds: None).call("read", "s3://b/x", call) == "done"
    assert len(calls) == 4


def test_what_stays_is_raised_at_once() -> None:
    call, calls = fails(3, PermissionError("Access Denied"))
    with pytest.raises(StorageError, match="failed once, and would fail again: PermissionError: Access Denied"):
        RetryPolicy().call("read", "s3://b/x", call)
    assert len(calls) == 1


@pytest.mark.parametrize("failing_call", range(1, 12))
def test_whichever_call_fails_once_the_work_gets_done(failing_call: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system that raises at its k-th call, before or after it did what it was asked."""
    for after in (False, True):
        storage = FsspecStorage(
            StorageSpec(f"memory://retries-{failing_call}-{after}"), RetryPolicy(sleep=lambda seconds: None)
        )
        fs, _ = storage._file_system()
        count = 0

        def failing(real: Callable[..., object], after: bool = after) -> Callable[..., object]:
            def call(*arguments: object, **more: object) -> object:
                nonlocal count
                count += 1
                if count != failing_call:
                    return real(*arguments, **more)
                if after:
                    real(*arguments, **more)
                raise ConnectionResetError("once")

            return call

        with monkeypatch.context() as patch:
            for name in ("pipe_file", "put_file", "cat_file", "info", "ls", "rm_file"):
                patch.setattr(fs, name, failing(getattr(fs, name)))
            with storage.write("a/one") as file:
                file.write(b"1")
            storage.write_once("a/two", b"2")
            with pytest.raises(FileExistsError):
                storage.write_once("a/two", b"other")
            assert storage.read("a/one") == b"1"
            assert storage.size("a/two") == 1
            assert storage.open("a/one").read() == b"1"
            assert sorted(storage.list("a")) == ["one", "two"]
            storage.delete("a/one")
            assert storage.list("a") == ["two"]
        assert count >= failing_call
