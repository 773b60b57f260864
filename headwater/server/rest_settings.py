"""The server's settings, read from a configuration. Secrets are read here and are in no repr."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from headwater.common.config_options import (
    REST_BIND_ADDRESS,
    REST_MAX_CONTENT,
    REST_PORT,
    SERVER_ALLOWED_HOSTS,
    SERVER_TLS_CERT,
    SERVER_TLS_KEY,
    SERVER_TOKEN,
    SERVER_TOKEN_FILE,
    STATE_DIRECTORY,
    UPLOAD_DIRECTORY,
)
from headwater.common.configuration import Configuration
from headwater.common.errors import ConfigurationError
from headwater.server.gate import Gate

NEXT_PORTS = 50
"""How many ports after the chosen one are tried if it is taken."""


@dataclass(frozen=True)
class RestSettings:
    """Where the server listens, and who may ask. Raises ConfigurationError for what is not safe."""

    gate: Gate
    ports: tuple[int, ...]
    """Those to try, in this order."""
    tls_cert: str | None
    tls_key: str | None
    max_content_bytes: int
    upload_directory: Path

    @classmethod
    def of(cls, configuration: Configuration) -> RestSettings:
        certificate, key = configuration.get(SERVER_TLS_CERT), configuration.get(SERVER_TLS_KEY)
        if bool(certificate) != bool(key):
            raise ConfigurationError(
                f"{SERVER_TLS_CERT.key} and {SERVER_TLS_KEY.key} go together, but only one of them is set"
            )
        for path in filter(None, (certificate, key)):
            if not os.access(path, os.R_OK):
                raise ConfigurationError(f"cannot read {path}, which is to be the server's certificate or its key")
        uploads = configuration.get(UPLOAD_DIRECTORY)
        allowed_hosts: list[str] | None = configuration.get(SERVER_ALLOWED_HOSTS)
        state_directory = Path(configuration.get(STATE_DIRECTORY)).expanduser()
        return cls(
            Gate(
                configuration.get(REST_BIND_ADDRESS),
                _token(configuration),
                tuple(allowed_hosts or ()),
            ),
            tuple(_ports(configuration.get(REST_PORT))),
            certificate,
            key,
            configuration.get(REST_MAX_CONTENT),
            Path(uploads).expanduser() if uploads else state_directory / "programs",
        )


def _token(configuration: Configuration) -> str:
    token, path = configuration.get(SERVER_TOKEN), configuration.get(SERVER_TOKEN_FILE)
    if token and path:
        raise ConfigurationError(f"{SERVER_TOKEN.key} and {SERVER_TOKEN_FILE.key} are both set; choose one")
    if path:
        try:
            with open(path, encoding="utf-8") as file:
                status = os.fstat(file.fileno())
                token = file.read().strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(f"{SERVER_TOKEN_FILE.key}: cannot read {path}: {error}") from None
        if status.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise ConfigurationError(f"{SERVER_TOKEN_FILE.key}: others can read {path}; chmod 600 it")
        if not token:
            raise ConfigurationError(f"{SERVER_TOKEN_FILE.key}: {path} is empty")
    if token and not (token.isascii() and token.isprintable() and " " not in token):
        raise ConfigurationError("the server's token must be printable ASCII without spaces, as it travels in a header")
    return token or ""


def _ports(text: str) -> Iterator[int]:
    """Return the ports to try. Flink's syntax: one, a range, or a list of both."""
    try:
        for part in text.split(","):
            first, dash, last = part.strip().partition("-")
            begin, end = int(first), int(last or first)
            if not 0 <= begin <= end <= 65_535:
                raise ValueError
            yield from range(begin, end + 1)
            if not dash and begin and "," not in text:
                yield from range(begin + 1, min(begin + NEXT_PORTS, 65_535) + 1)
    except ValueError:
        raise ConfigurationError(
            f"{REST_PORT.key} is '{text}'; expected a port, or a range such as 8081-8090"
        ) from None
