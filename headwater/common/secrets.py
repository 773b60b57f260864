"""Secrets by reference: a setting says where its value is, and a connector looks there when it connects.

`${env:NAME}` is an environment variable, `${file:/path}` the text of a file without the line feed at its end. So a
password is in no program, plan, checkpoint, log or dashboard. The process that uses it resolves the reference: the
variable or file must be there on every host that runs a part of the job.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from headwater.common.errors import ConfigurationError

HIDDEN = "******"

_REFERENCE = re.compile(r"\$\{(env|file):([^}]*)\}")
_WORDS = (
    "password", "secret", "fs.azure.account.key", "apikey", "api-key", "auth-params", "service-key", "token",
    "basic-auth", "jaas.config", "http-headers", "credential", "access.key", "access-key", "private.key",
)  # fmt: skip
"""Flink's (GlobalConfiguration), and those that name keys of stores and clients."""
_IN_QUERY = re.compile(r"(?<=[?&;])(password|pwd)=(?!\$\{)[^&;\s'\"]+", re.IGNORECASE)
_OPTION = re.compile(r"'([^'\n]+)'(\s*=\s*)'((?:[^'\n]|'')*)")
_IN_URL = re.compile(r"(?<=://)([^/@\s:]*):([^/@\s]+)@")


def resolve(text: str, what: str) -> str:
    """Return `text` with its references replaced by what they refer to. `what` names the setting in an error."""

    def value(match: re.Match[str]) -> str:
        kind, name = match.groups()
        if kind == "env":
            found = os.environ.get(name)
            if found is None:
                raise ConfigurationError(f"{what}: {match[0]} is not set: there is no environment variable {name!r}")
            return found
        try:
            with open(name, encoding="utf-8") as file:
                return file.read().removesuffix("\n")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise ConfigurationError(f"{what}: {match[0]} cannot be read: {reason}") from None

    return _REFERENCE.sub(value, text)


def resolved(settings: Mapping[str, str], owner: str) -> dict[str, str]:
    """Return the settings with all references resolved. `owner` is whose they are, for errors."""
    return {key: resolve(value, f"{owner}: {key}") for key, value in settings.items()}


def names_a_secret(key: str) -> bool:
    """Return True if the value of a setting with this name may be a secret."""
    return any(word in key.lower() for word in _WORDS)


def shown(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings as people may see them: secrets are stars, unless they are mere references."""
    return {
        key: HIDDEN if names_a_secret(key) and not _REFERENCE.fullmatch(value) else without_passwords(value)
        for key, value in settings.items()
    }


def masked(sql: str) -> str:
    """Return a part of a statement with the values of its secret options as stars: as long as it was."""

    def stars(match: re.Match[str]) -> str:
        key, between, value = match.groups()
        secret = names_a_secret(key) and not _REFERENCE.fullmatch(value)
        shown = "*" * len(value) if secret or without_passwords(value) != value else value
        return f"'{key}'{between}'{shown}"

    return _OPTION.sub(stars, sql)


def without_passwords(text: str, *secrets: str) -> str:
    """Return `text` with passwords in URLs, and each of `secrets`, replaced by stars: for errors of other libraries."""
    for secret in secrets:
        if secret:
            text = text.replace(secret, HIDDEN)
    return _IN_QUERY.sub(rf"\1={HIDDEN}", _IN_URL.sub(rf"\1:{HIDDEN}@", text))
