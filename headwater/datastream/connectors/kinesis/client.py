"""Clients of AWS: one for each service and settings, shared by all readers and writers of a process."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Mapping
from typing import Any, Final

from headwater.common.errors import ConfigurationError, ExternalSystemError, HeadwaterError
from headwater.common.secrets import resolved, shown, without_passwords
from headwater.datastream.connectors.library import library

log = logging.getLogger("headwater.kinesis")

REGION: Final = "aws.region"
ENDPOINT: Final = "aws.endpoint"
PROVIDER: Final = "aws.credentials.provider"
PROFILE: Final = "aws.credentials.provider.profile.name"
TRUST_ALL: Final = "aws.trust.all.certificates"
_ARGUMENTS: Final = {
    ENDPOINT: "endpoint_url",
    "aws.credentials.provider.basic.accesskeyid": "aws_access_key_id",
    "aws.credentials.provider.basic.secretkey": "aws_secret_access_key",
    "aws.credentials.provider.basic.token": "aws_session_token",
}
"""Flink's names, and boto3's."""
_PROVIDERS: Final = ("AUTO", "BASIC", "ENV_VAR", "PROFILE", "WEB_IDENTITY_TOKEN")
"""What boto3 finds by itself."""
PROPERTIES: Final = frozenset((*_ARGUMENTS, REGION, PROVIDER, PROFILE, TRUST_ALL))

EXPIRED: Final = "ExpiredIteratorException"
_PASSING: Final = frozenset((
    EXPIRED, "ProvisionedThroughputExceededException", "LimitExceededException", "ThrottlingException",
    "InternalFailure", "InternalServerError", "KMSThrottlingException", "RequestTimeout", "ServiceUnavailable",
    "ServiceUnavailableException", "ResourceInUseException",
))  # fmt: skip


class AwsError(HeadwaterError):
    """A service refuses something for good, with its code."""

    def __init__(self, message: str, code: str = "") -> None:
        super().__init__(message)
        self.code = code


class PassingAwsError(ExternalSystemError):
    """A service refuses something for now, with its code: there were too many requests, for example."""

    def __init__(self, message: str, code: str = "") -> None:
        super().__init__(message)
        self.code = code


class AwsClient:
    """A client of one service. Its errors name the owner and the service, and no secret."""

    def __init__(self, owner: str, service: str, properties: Mapping[str, str]) -> None:
        self.owner = owner
        self._service = service
        self._properties = dict(properties)

    def call(self, what: str, operation: str, **arguments: Any) -> dict[str, Any]:
        """Call an operation. Raises `AwsError`, or an `ExternalSystemError` if it may work later."""
        exceptions = library("botocore.exceptions", "Kinesis", "kinesis")
        try:
            answer: dict[str, Any] = getattr(self._client(), operation)(**arguments)
            return answer
        except exceptions.ClientError as error:
            code = error.response.get("Error", {}).get("Code", "")
            message = f"{self.owner}: {what}: {without_passwords(str(error))}"
            if code in _PASSING or error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0) >= 500:
                raise PassingAwsError(message, code) from None
            forget(self._key())  # with other credentials it may work
            raise AwsError(message, code) from None
        except exceptions.BotoCoreError as error:
            message = f"{self.owner}: {what}: {without_passwords(str(error))}"
            permanent = ("NoCredentialsError", "PartialCredentialsError", "NoRegionError", "ParamValidationError")
            if type(error).__name__ in permanent:
                raise HeadwaterError(message) from None
            raise ExternalSystemError(message) from None

    def _key(self) -> tuple[Any, ...]:
        # A client has connections, which a forked process must not share.
        return os.getpid(), self._service, tuple(sorted(self._properties.items()))

    def _client(self) -> Any:
        key = self._key()
        with _lock:
            if key not in _clients:
                _clients[key] = self._new()
            return _clients[key]

    def _new(self) -> Any:
        boto3 = library("boto3", "Kinesis", "kinesis")
        config = library("botocore.config", "Kinesis", "kinesis").Config(
            connect_timeout=10, read_timeout=60, retries={"mode": "standard", "total_max_attempts": 3}
        )
        own = resolved(self._properties, self.owner)
        given: dict[str, Any] = {name: own[key] for key, name in _ARGUMENTS.items() if key in own}
        if own.get(TRUST_ALL, "false").lower() == "true":
            given["verify"] = False
        session = boto3.session.Session(profile_name=own.get(PROFILE), region_name=own.get(REGION))
        return session.client(self._service, config=config, **given)


_clients: dict[tuple[Any, ...], Any] = {}
_lock = threading.Lock()


def forget(key: tuple[Any, ...]) -> None:
    with _lock:
        _clients.pop(key, None)


def checked_properties(properties: Any, owner: str) -> dict[str, str]:
    """The settings of a client as text. Needs a region, or an endpoint."""
    library("boto3", "Kinesis", "kinesis")
    if not isinstance(properties, Mapping):
        raise ConfigurationError(f"{owner}: expected a dict of properties, found {properties!r}")
    own = {str(key): str(value) for key, value in properties.items()}
    if not own.get(REGION):
        raise ConfigurationError(f"{owner}: the properties {shown(own)} have no '{REGION}', such as 'us-east-1'")
    if own.get(PROVIDER, "AUTO").upper() not in _PROVIDERS:
        raise ConfigurationError(
            f"{owner}: {PROVIDER}: expected one of {', '.join(_PROVIDERS)}, found {own[PROVIDER]!r}; to assume a role, "
            f"name a profile that does so ({PROFILE})"
        )
    return own
