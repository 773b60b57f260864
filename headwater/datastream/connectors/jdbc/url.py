"""JDBC URLs, as Flink programs have them, taken apart. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qsl, unquote

from headwater.common.errors import ConfigurationError
from headwater.common.secrets import without_passwords

KINDS: Final = {"postgresql": "postgres", "mysql": "mysql", "mariadb": "mysql", "sqlite": "sqlite"}


@dataclass(frozen=True)
class JdbcUrl:
    """What a URL says. Nothing of it is resolved or checked against a driver yet."""

    kind: str
    """One of the values of `KINDS`."""
    hosts: tuple[tuple[str, int | None], ...]
    """(host, port), in the order in which they are tried. Empty: the driver's default, or a file."""
    database: str
    """For SQLite the path of the file."""
    properties: dict[str, str]


def parse_url(url: str) -> JdbcUrl:
    """Take `jdbc:<kind>://host:port,host2/database?name=value&...` apart. Raises ConfigurationError."""
    scheme, _, rest = url.removeprefix("jdbc:").partition(":")
    kind = KINDS.get(scheme.lower())
    if not url.startswith("jdbc:") or kind is None:
        raise ConfigurationError(
            f"no database that headwater knows: '{without_passwords(url)}'; expected jdbc:postgresql:, jdbc:mysql:, "
            "jdbc:mariadb: or jdbc:sqlite:"
        )
    address, _, query = rest.partition("?")
    properties = dict(parse_qsl(query, keep_blank_values=True))
    if kind == "sqlite":
        path = address.removeprefix("file:")
        if path in ("", ":memory:"):
            raise ConfigurationError(
                f"'{url}': a database in memory is another one in each process; name a file: jdbc:sqlite:/path"
            )
        return JdbcUrl(kind, (), path, properties)
    if not address.startswith("//"):
        return JdbcUrl(kind, (), unquote(address), properties)  # jdbc:postgresql:database
    authority, _, database = address[2:].partition("/")
    if "@" in authority:
        raise ConfigurationError(
            f"'{without_passwords(url)}': JDBC URLs have no user in front of the host; call with_user_name and "
            "with_password"
        )
    hosts = tuple(_host(each, url) for each in authority.split(",") if each)
    return JdbcUrl(kind, hosts, unquote(database), properties)


def _host(text: str, url: str) -> tuple[str, int | None]:
    if text.startswith("["):
        host, _, port = text[1:].partition("]")
        port = port.removeprefix(":")
    else:
        host, _, port = text.partition(":")
    if port and not port.isdigit():
        raise ConfigurationError(f"'{without_passwords(url)}': the port {port!r} is no number")
    return host, int(port) if port else None
