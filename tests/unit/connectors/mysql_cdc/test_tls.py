"""TLS to a real MariaDB: what the URL asks for is what the connection has."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest

from headwater.common import RowKind
from headwater.common.errors import ConfigurationError, ExternalSystemError, HeadwaterError
from headwater.datastream.connectors.jdbc.database import open_database
from headwater.datastream.connectors.mysql_cdc import MySqlSource
from tests.mariadb_server import MariaDbServer, mariadb_server
from tests.unit.connectors.brokers.servers import free_port, self_signed
from tests.unit.connectors.jdbc import tables
from tests.unit.connectors.mysql_cdc.test_mariadb import read_until, start

USER = {"user": "tls", "password": "words"}


class TlsServer:
    """A server with a certificate for 127.0.0.1, and a user who must use TLS, unless he is `plain`."""

    def __init__(self, server: MariaDbServer, port: int, directory: Path) -> None:
        self.server = server
        self.port = port
        self.directory = directory
        server.run("mysql", *(f"CREATE USER {name}@'%' IDENTIFIED BY 'words'" for name in ("tls", "plain")))
        server.run(
            "mysql", "ALTER USER tls@'%' REQUIRE SSL", "GRANT ALL ON *.* TO tls@'%'", "GRANT ALL ON *.* TO plain@'%'"
        )

    @property
    def ca(self) -> str:
        return str(self.directory / "certificate.pem")

    def cipher(self, host: str = "127.0.0.1", **properties: str) -> str:
        url = f"jdbc:mysql://{host}:{self.port}/mysql?{urlencode({**USER, **properties})}"
        connection = open_database(tables.options(url), "test").connect()
        cursor = connection.cursor()
        cursor.execute("SHOW STATUS LIKE 'Ssl_cipher'")
        found: str = cursor.fetchone()[1]
        connection.close()
        return found


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TlsServer]:
    directory, port = tmp_path_factory.mktemp("tls"), free_port()
    certificate, key = self_signed(directory)
    settings = ("--skip-networking=0", "--bind-address=127.0.0.1", f"--port={port}")
    with mariadb_server(
        *settings, f"--ssl-cert={certificate}", f"--ssl-key={key}", f"--ssl-ca={certificate}"
    ) as server:
        yield TlsServer(server, port, directory)


@pytest.mark.parametrize(
    "properties",
    [
        {},
        {"sslMode": "PREFERRED"},
        {"sslMode": "REQUIRED"},
        {"sslMode": "trust"},
        {"useSSL": "true", "tlsVersions": "TLSv1.2,TLSv1.3"},
        {"requireSSL": "true"},
        {"sslMode": "VERIFY_CA", "sslCa": "CA"},
        {"sslMode": "VERIFY_IDENTITY", "sslCa": "CA"},
        {"sslMode": "verify-full", "serverSslCert": "CA"},
        {"sslCa": "CA"},
        {"useSSL": "true", "verifyServerCertificate": "true", "sslCa": "CA"},
    ],
    ids=str,
)
def test_connections_are_encrypted(tls: TlsServer, properties: dict[str, str]) -> None:
    assert tls.cipher(**{name: tls.ca if value == "CA" else value for name, value in properties.items()})


@pytest.mark.parametrize("properties", [{"sslMode": "DISABLED"}, {"useSSL": "false"}], ids=str)
def test_tls_can_be_switched_off(tls: TlsServer, properties: dict[str, str]) -> None:
    assert tls.cipher(**properties, user="plain") == ""
    with pytest.raises(HeadwaterError, match="Access denied"):
        tls.cipher(**properties)


@pytest.mark.parametrize(
    "properties",
    [{"sslMode": "VERIFY_CA"}, {"useSSL": "true", "verifyServerCertificate": "true"}, {"sslCa": "OTHER"}],
    ids=str,
)
def test_a_certificate_of_nobody_known_is_refused(tls: TlsServer, tmp_path: Path, properties: dict[str, str]) -> None:
    other = str(self_signed(tmp_path)[0])
    with pytest.raises(HeadwaterError, match="CERTIFICATE_VERIFY_FAILED") as raised:
        tls.cipher(**{name: other if value == "OTHER" else value for name, value in properties.items()})
    assert not isinstance(raised.value, ExternalSystemError)  # trying again does not help


def test_a_certificate_of_another_host_is_refused(tls: TlsServer) -> None:
    assert tls.cipher("localhost", sslMode="VERIFY_CA", sslCa=tls.ca)
    with pytest.raises(HeadwaterError, match=r"[Hh]ostname mismatch"):
        tls.cipher("localhost", sslMode="VERIFY_IDENTITY", sslCa=tls.ca)


def test_a_client_with_a_certificate(tls: TlsServer) -> None:
    tls.server.run(
        "mysql", "CREATE OR REPLACE USER known@'%' IDENTIFIED BY 'words' REQUIRE X509", "GRANT ALL ON *.* TO known@'%'"
    )
    files = {"sslCert": tls.ca, "sslKey": str(tls.directory / "key.pem")}
    assert tls.cipher(user="known", sslMode="REQUIRED", **files)
    with pytest.raises(HeadwaterError, match="Access denied"):
        tls.cipher(user="known", sslMode="REQUIRED")


def test_a_server_without_tls_is_refused() -> None:
    with mariadb_server("--skip-ssl") as server:
        for more in ("&sslMode=REQUIRED", "&useSSL=true"):
            with pytest.raises(HeadwaterError, match="SSL"):
                open_database(tables.options(server.url("mysql") + more), "test").connect()
        open_database(tables.options(server.url("mysql") + "&sslMode=PREFERRED"), "test").connect().close()


@pytest.mark.parametrize(
    ("properties", "words"),
    [
        ({"sslMode": "SOME"}, "expected DISABLED, PREFERRED"),
        ({"sslCa": "/nowhere.pem"}, "expected PEM files.*nowhere"),
        ({"sslMode": "REQUIRED", "sslCert": "/nowhere.pem"}, "expected PEM files.*nowhere"),
        ({"trustCertificateKeyStoreUrl": "file:/x.jks"}, "store of Java; give PEM files"),
        ({"sslMode": "REQUIRED", "tlsVersions": "TLSv1"}, "expected TLSv1.2"),
    ],
)  # fmt: skip
def test_properties_that_cannot_be_had(properties: dict[str, str], words: str) -> None:
    url = f"jdbc:mysql://127.0.0.1:1/x?{urlencode(properties)}"
    with pytest.raises(ConfigurationError, match=words):
        open_database(tables.options(url), "test").connect()


def test_changes_are_read_over_tls(tls: TlsServer) -> None:
    database = tls.server.new_database()
    tls.server.run(database, "CREATE TABLE items (id int PRIMARY KEY)", "INSERT INTO items VALUES (1)")
    builder = MySqlSource.builder().hostname("127.0.0.1").port(tls.port).username("tls").password("words")
    properties = {"sslMode": "VERIFY_IDENTITY", "sslCa": tls.ca}
    source = builder.table_list(f"{database}.items").jdbc_properties(properties).build()
    reader = start(source)
    assert [row.get_row_kind() for row in read_until(reader, bool)] == [RowKind.INSERT]
    tls.server.run(database, "DELETE FROM items")
    assert [row.get_row_kind() for row in read_until(reader, bool)] == [RowKind.DELETE]
    reader.close()
