"""The one gate that every request passes: its host, where it comes from, and its token.

Decisions are made of facts, without I/O. Tokens are compared by their SHA-256, in constant time, and appear in no log.
"""

from __future__ import annotations

import hmac
import ipaddress
import re
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from starlette.datastructures import Headers

from headwater.common.errors import ConfigurationError
from headwater.runtime.job.run_directory import token_digest
from headwater.server.http_error import HttpError
from headwater.server.route import Access, Route

_BEARER = re.compile(r"Bearer +([!-~]+)", re.IGNORECASE)
_LOCAL_NAMES = ("localhost", "ip6-localhost")


def is_loopback(host: str) -> bool:
    """Return True if only this machine can reach the address."""
    if host.lower().rstrip(".") in _LOCAL_NAMES:
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True)
class Gate:
    """Who may ask. Made once per server; raises ConfigurationError if it would be open to other machines."""

    bind_address: str
    token: str = field(default="", repr=False)
    """The server's token: it opens everything. Empty: none is needed, which only a loopback address allows."""
    allowed_hosts: tuple[str, ...] = ()
    """Names besides the loopback ones under which browsers may ask a server on a loopback address."""

    def __post_init__(self) -> None:
        if not self.token and not is_loopback(self.bind_address):
            raise ConfigurationError(
                f"rest.bind-address is {self.bind_address}, which other machines can reach, and there is no token: set "
                "headwater.server.token or headwater.server.token-file, or bind to 127.0.0.1"
            )

    def check_origin(self, route_changes: bool, headers: Headers) -> None:
        """Refuse what a page of another site makes a browser send. Raises HttpError."""
        hosts = headers.getlist("host")
        host = _host_name(hosts[0]) if len(hosts) == 1 else None
        if len(hosts) > 1 or (hosts and host is None):
            raise HttpError(400, "the request has a malformed Host header, or more than one")
        if is_loopback(self.bind_address) and not (
            host is None or is_loopback(host) or host in (each.lower() for each in self.allowed_hosts)
        ):
            raise HttpError(
                403,
                f"this server answers on a loopback address only, and not as '{host}'; a proxy's name can be allowed "
                "with headwater.server.allowed-hosts",
            )
        if not route_changes:
            return
        origin = headers.get("origin")
        if origin is not None and (not hosts or _authority(origin) != hosts[0].lower()):
            raise HttpError(403, "a request that changes something must not come from a page of another site")
        if headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
            raise HttpError(403, "a request that changes something must not come from a page of another site")

    def check_token(self, route: Route, headers: Headers, job_digest: str) -> None:
        """Refuse who has no right to the route. `job_digest` is of the job that the path names, empty if it has none.

        Raises HttpError 401 without a token, 403 with one that does not open this route.
        """
        if route.access is Access.PUBLIC:
            return
        needed = [digest for digest in (token_digest(self.token), job_digest) if digest]
        if not needed:
            return
        given = headers.getlist("authorization")
        found = _BEARER.fullmatch(given[0].strip()) if len(given) == 1 else None
        if found is None:
            raise HttpError(
                401, "this needs a token: send 'Authorization: Bearer TOKEN'", {"WWW-Authenticate": "Bearer"}
            )
        digest = token_digest(found[1])
        if not any([hmac.compare_digest(digest, each) for each in needed]):
            raise HttpError(403, "the token does not open this")


def _host_name(header: str) -> str | None:
    """Return the name in a Host header, without its port; None if it is malformed."""
    found = re.fullmatch(r"(\[[0-9a-fA-F:.]+\]|[\w.-]+)(:[0-9]{1,5})?", header.strip(), re.ASCII)
    return found[1].lower() if found is not None else None


def _authority(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc.lower() or None
    except ValueError:
        return None
