"""Find a MariaDB server for the tests, or fetch one without root, and print its path.

In this order: `$MARIADBD`; one that is installed; the one in `.cache/mariadb`; Debian's packages, unpacked (needs
apt-get and dpkg-deb). Exit code 1 with the reasons if none can be had.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

CACHE = Path(__file__).parent.parent / ".cache" / "mariadb"
PACKAGE = "mariadb-server-core"
LAUNCHER = """#!/bin/sh
# Starts the server with the libraries and messages that came with it.
here="$(cd "$(dirname "$0")" && pwd)"
for libraries in "$here"/usr/lib/*-linux-gnu "$here"/lib/*-linux-gnu; do
  LD_LIBRARY_PATH="$libraries:$LD_LIBRARY_PATH"
done
export LD_LIBRARY_PATH
exec "$here/usr/sbin/mariadbd" --no-defaults --lc-messages-dir="$here/usr/share/mysql" "$@"
"""


class Unavailable(Exception):
    """This way gives no server here."""


def main() -> int:
    reasons = []
    for way in (named, installed, fetched_before, from_debian):
        try:
            server = way()
            run([str(server), "--version"])
            print(server)
            return 0
        except (Unavailable, OSError, subprocess.SubprocessError) as error:
            output = getattr(error, "stderr", None)
            reasons.append(f"{way.__name__}: {error}" + (f" ({output.strip()[-300:]})" if output else ""))
    print("no MariaDB:\n  " + "\n  ".join(reasons), file=sys.stderr)
    return 1


def named() -> Path:
    if "MARIADBD" not in os.environ:
        raise Unavailable("MARIADBD is not set")
    return Path(os.environ["MARIADBD"])


def installed() -> Path:
    found = shutil.which("mariadbd")
    if found is None:
        raise Unavailable("none is installed")
    return Path(found)


def fetched_before() -> Path:
    if not (CACHE / "run").exists():
        raise Unavailable(f"{CACHE} is empty")
    return CACHE / "run"


def from_debian() -> Path:
    """Unpack the package and whatever of its dependencies is not installed; nothing of the system is touched."""
    for tool in ("apt-get", "dpkg-deb"):
        if not shutil.which(tool):
            raise Unavailable(f"there is no {tool}")
    CACHE.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE.parent) as directory:
        folder = Path(directory) / "mariadb"
        folder.mkdir()
        plan = run(["apt-get", "--simulate", "--no-install-recommends", "install", PACKAGE])
        packages = re.findall(r"^Inst (\S+)", plan, re.MULTILINE)
        run(["apt-get", "-o", "APT::Sandbox::User=root", "download", *packages], cwd=folder)
        for package in sorted(folder.glob("*.deb")):
            run(["dpkg-deb", "-x", str(package), str(folder)])
            package.unlink()
        (folder / "run").write_text(LAUNCHER, encoding="utf-8")
        (folder / "run").chmod(0o755)
        run([str(folder / "run"), "--version"])
        if not CACHE.exists():  # two may do this at once
            folder.rename(CACHE)
    return CACHE / "run"


def run(command: list[str], cwd: Path | None = None) -> str:
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=True, timeout=300).stdout


if __name__ == "__main__":
    sys.exit(main())
