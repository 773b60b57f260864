"""A real MariaDB server on this machine, behind a Unix socket, with a binary log. Fetched by scripts/get_mariadb.py."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pymysql
import pytest

from tests.waiting import wait_until

ROOT = Path(__file__).parent.parent
SETTINGS = (
    "--skip-networking",
    "--log-bin=binlog",
    "--server-id=1",
    "--binlog-format=ROW",
    "--binlog-row-metadata=FULL",
    "--innodb-buffer-pool-size=32M",
    "--innodb-flush-log-at-trx-commit=0",
    "--performance-schema=OFF",
)


@dataclass
class MariaDbServer:
    """Where it is."""

    binary: str
    directory: Path
    process: subprocess.Popen[bytes] | None = field(default=None)
    more: tuple[str, ...] = ()
    """Settings beside `SETTINGS`."""

    @property
    def socket(self) -> str:
        return str(self.directory / "socket")

    def start(self) -> None:
        command = [
            self.binary,
            f"--datadir={self.directory}/data",
            f"--socket={self.socket}",
            *SETTINGS,
            *self.more,
            *_user(),
        ]
        self.process = subprocess.Popen(command, stderr=(self.directory / "log").open("ab"))
        wait_until(self._answers, lambda: (self.directory / "log").read_text()[-2000:])

    def stop(self) -> None:
        """End it at once, as a power cut does; its data stays."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def _answers(self) -> bool:
        try:
            pymysql.connect(unix_socket=self.socket, user="root").close()
            return True
        except pymysql.Error:
            return False

    def new_database(self) -> str:
        """Make an empty database, and return its name."""
        name = f"test_{uuid.uuid4().hex[:12]}"
        self.run("mysql", f"CREATE DATABASE {name} CHARACTER SET utf8mb4")
        return name

    def url(self, database: str) -> str:
        return f"jdbc:mariadb:{database}?unix_socket={self.socket}&user=root"

    def run(self, database: str, *statements: str) -> list[Any]:
        """Run statements, and return the rows of the last one."""
        with pymysql.connect(unix_socket=self.socket, user="root", database=database, autocommit=True) as connection:
            cursor = connection.cursor()
            for statement in statements:
                cursor.execute(statement)
            return list(cursor.fetchall())


def _user() -> list[str]:
    return ["--user=root"] if os.geteuid() == 0 else []


@contextlib.contextmanager
def mariadb_server(*more: str) -> Iterator[MariaDbServer]:
    """Start one with a fresh data directory; it ends, and its data goes, with the block. Skips where there is none."""
    found = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "get_mariadb.py")], capture_output=True, text=True, check=False
    )
    if found.returncode:
        if os.environ.get("CI"):
            pytest.fail(found.stderr)  # where all tests must run, none may go away in silence
        pytest.skip(found.stderr.strip())
    binary = found.stdout.strip()
    directory = Path(tempfile.mkdtemp(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None))
    server = MariaDbServer(binary, directory, more=more)
    try:
        _initialise(binary, directory)
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(directory, ignore_errors=True)


def _initialise(binary: str, directory: Path) -> None:
    """What mariadb-install-db does, with a user root that needs no password."""
    (directory / "data").mkdir()
    scripts = next(
        path
        for path in (Path(binary).parent / "usr/share/mysql", Path("/usr/share/mysql"), Path("/usr/share/mariadb"))
        if path.exists()
    )
    text = "CREATE DATABASE mysql;\nUSE mysql;\n"
    text += (scripts / "mysql_system_tables.sql").read_text()
    text += "\nFLUSH PRIVILEGES;\nCREATE USER root@localhost;\nGRANT ALL ON *.* TO root@localhost WITH GRANT OPTION;\n"
    command = [binary, "--bootstrap", f"--datadir={directory}/data", "--performance-schema=OFF", *_user()]
    subprocess.run(command, input=text.encode(), capture_output=True, check=True, timeout=120)
