"""Clients of Redis: made where they are used."""

from __future__ import annotations

from typing import Any, Final

from headwater.common.errors import ConfigurationError, ExternalSystemError, HeadwaterError
from headwater.common.secrets import resolve, without_passwords
from headwater.datastream.connectors.library import library

CONNECT_SECONDS: Final = 5.0


class RedisClient:
    """A client for one URL. Its errors name the owner and the server, and no password."""

    def __init__(self, owner: str, url: str) -> None:
        self.owner = owner
        self.shown = without_passwords(url)
        redis = library("redis", "Redis", "redis")
        try:
            self.client: Any = redis.Redis.from_url(
                resolve(url, owner), socket_connect_timeout=CONNECT_SECONDS, socket_timeout=60
            )
        except ValueError as error:
            raise ConfigurationError(
                f"{owner}: '{self.shown}' is no URL of a Redis server ({error}); expected redis://host:6379/0, "
                "rediss://... or unix:///path"
            ) from None

    def failed(self, what: str, error: Exception) -> HeadwaterError:
        """Return the error to raise. A server that is away may come back; a wrong password or command does not pass."""
        redis = library("redis", "Redis", "redis")
        message = f"{self.owner}: {what} at Redis {self.shown}: {without_passwords(str(error))}"
        permanent = (redis.AuthenticationError, redis.ResponseError)
        passing = (redis.exceptions.BusyLoadingError, redis.exceptions.ReadOnlyError)
        if isinstance(error, permanent) and not isinstance(error, passing):
            return HeadwaterError(message)
        return ExternalSystemError(message)

    def call(self, what: str, *command: Any) -> Any:
        """Run one command."""
        try:
            return self.client.execute_command(*command)
        except library("redis", "Redis", "redis").RedisError as error:
            raise self.failed(what, error) from None

    def ping(self) -> None:
        """Raise if the server is not there, or does not let us in."""
        self.call("cannot connect", "PING")

    def close(self) -> None:
        self.client.close()


def checked_url(url: Any, what: str) -> str:
    if not isinstance(url, str) or not url:
        raise ConfigurationError(f"{what}: expected a URL such as redis://host:6379/0, found {url!r}")
    return url
