"""TLS to MySQL and MariaDB, by the properties of their URLs."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Any, Final

from headwater.common.errors import ConfigurationError

_MODES: Final = {
    "DISABLED": "off",
    "DISABLE": "off",
    "FALSE": "off",
    "PREFERRED": "preferred",
    "REQUIRED": "unverified",
    "TRUST": "unverified",
    "VERIFY_CA": "ca",
    "VERIFY_IDENTITY": "identity",
    "VERIFY_FULL": "identity",
}
"""{sslMode of either driver, in capitals and with _: what is done}"""
_CA: Final = ("sslCa", "ssl_ca", "serverSslCert")
_CERTIFICATE: Final = ("sslCert", "ssl_cert")
_KEY: Final = ("sslKey", "ssl_key")
_SWITCHES: Final = ("useSSL", "requireSSL", "verifyServerCertificate", "trustServerCertificate")
_VERSIONS: Final = ("tlsVersions", "enabledTLSProtocols", "enabledSslProtocolSuites")
_STORES: Final = ("trustCertificateKeyStoreUrl", "clientCertificateKeyStoreUrl", "trustStore", "keyStore")
TLS_PROPERTIES: Final = frozenset(("sslMode", "ssl_mode", *_CA, *_CERTIFICATE, *_KEY, *_SWITCHES, *_VERSIONS, *_STORES))
_KNOWN_VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}


def tls_settings(properties: Mapping[str, str], owner: str) -> dict[str, Any]:
    """PyMySQL's settings. Raises ConfigurationError rather than connecting with less than was asked for."""
    for name in _STORES:
        if name in properties:
            raise ConfigurationError(
                f"{owner}: '{name}' is a store of Java; give PEM files: sslCa for the server's authority, sslCert and "
                "sslKey for the client"
            )
    ca, certificate, key = (_first(properties, names) for names in (_CA, _CERTIFICATE, _KEY))
    mode = _mode(properties, owner, ca is not None, certificate is not None)
    if mode == "off":
        return {"ssl_disabled": True}
    if mode == "preferred":
        return {}
    try:
        return {"ssl": _context(mode, ca, certificate, key, _versions(properties, owner))}
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        files = ", ".join(repr(each) for each in (ca, certificate, key) if each is not None)
        raise ConfigurationError(f"{owner}: expected PEM files, keys without a password: {files}: {error}") from None


def _mode(properties: Mapping[str, str], owner: str, ca: bool, certificate: bool) -> str:
    given = properties.get("sslMode", properties.get("ssl_mode"))
    switched = {name: properties[name].lower() == "true" for name in _SWITCHES if name in properties}
    if given is not None:
        mode = _MODES.get(given.upper().replace("-", "_"))
        if mode is None:
            raise ConfigurationError(
                f"{owner}: 'sslMode' is {given!r}; expected DISABLED, PREFERRED, REQUIRED, VERIFY_CA or VERIFY_IDENTITY"
            )
    elif any(switched.get(name) for name in _SWITCHES) or ca or certificate:
        mode = "ca" if switched.get("verifyServerCertificate") else "unverified"
    else:
        mode = "off" if switched.get("useSSL") is False else "preferred"
    # Whoever names an authority wants it to be asked.
    return "ca" if ca and mode in ("unverified", "preferred") else mode


def _context(
    mode: str, ca: str | None, certificate: str | None, key: str | None, versions: list[ssl.TLSVersion]
) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=ca)
    # The certificates that MySQL makes for itself do not pass it.
    context.verify_flags &= ~getattr(ssl, "VERIFY_X509_STRICT", 0)
    context.check_hostname = mode == "identity"
    context.verify_mode = ssl.CERT_NONE if mode == "unverified" else ssl.CERT_REQUIRED
    if certificate is not None:
        context.load_cert_chain(certificate, key, password=lambda: "")  # or it would ask at the terminal
    if versions:
        context.minimum_version, context.maximum_version = min(versions), max(versions)
    return context


def _versions(properties: Mapping[str, str], owner: str) -> list[ssl.TLSVersion]:
    given = _first(properties, _VERSIONS)
    names = [] if given is None else [each.strip() for each in given.split(",")]
    unknown = [each for each in names if each not in _KNOWN_VERSIONS]
    if unknown:
        raise ConfigurationError(f"{owner}: TLS version {unknown[0]!r}; expected TLSv1.2 or TLSv1.3")
    return [_KNOWN_VERSIONS[each] for each in names]


def _first(properties: Mapping[str, str], names: tuple[str, ...]) -> str | None:
    return next((properties[name] for name in names if properties.get(name)), None)
