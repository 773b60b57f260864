"""Fetch the dashboard's three libraries from npm anew: `python scripts/vendor_dashboard.py` (needs npm).

The page has no build step, and its content security policy allows neither inline scripts nor import maps. So bare
imports (`from "preact"`) become relative ones here, and uPlot's script becomes a module. Nothing else is changed.
"""

from __future__ import annotations

import base64
import hashlib
import re
import subprocess
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

VENDOR = Path(__file__).parent.parent / "headwater" / "server" / "dashboard" / "page" / "vendor"


@dataclass(frozen=True)
class Package:
    name: str
    version: str
    sha512: str
    """As npm's lock files have it: base64."""
    licence: str
    files: dict[str, str]  # {path in the package: file in the vendor folder}


PACKAGES = (
    Package(
        "preact",
        "11.2.0",
        "/HfHI/7N84e6GrWBJ3J280z3mLaRJiDcSvj/A+y/4AbLnND/1UlGHe1sR6oYuTGwId0nP7dqDU9OnLxMPZ7xBg==",
        "MIT",
        {"dist/preact.mjs": "preact.js", "hooks/dist/hooks.mjs": "hooks.js", "LICENSE": "LICENSE.preact"},
    ),
    Package(
        "htm",
        "3.1.1",
        "983Vyg8NwUE7JkZ6NmOqpCZ+sh1bKv2iYTlUkzlWmA5JD2acKoxd4KVxbMmxX/85mtfdnDmTFoNKcg5DGAvxNQ==",
        "Apache-2.0",
        {"dist/htm.mjs": "htm.js", "LICENSE": "LICENSE.htm"},
    ),
    Package(
        "uplot",
        "1.6.32",
        "KIMVnG68zvu5XXUbC4LQEPnhwOxBuLyW1AHtpm6IKTXImkbLgkMy+jabjLgSLMasNuGGzQm/ep3tOkyTxpiQIw==",
        "MIT",
        {"dist/uPlot.iife.min.js": "uplot.js", "dist/uPlot.min.css": "uplot.css", "LICENSE": "LICENSE.uplot"},
    ),
)


def main() -> None:
    VENDOR.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as directory:
        for package in PACKAGES:
            fetch(package, Path(directory))
    for path in sorted(VENDOR.iterdir()):
        print(f"{path.stat().st_size:>8,} {path.name}")


def fetch(package: Package, directory: Path) -> None:
    spec = f"{package.name}@{package.version}"
    packed = subprocess.run(
        ["npm", "pack", "--silent", spec], cwd=directory, check=True, capture_output=True, text=True
    )
    tarball = directory / packed.stdout.strip()
    found = base64.b64encode(hashlib.sha512(tarball.read_bytes()).digest()).decode()
    if found != package.sha512:
        raise SystemExit(f"{spec} has sha512 {found}, expected {package.sha512}: see what changed before you pin it")
    with tarfile.open(tarball) as archive:
        for inside, name in package.files.items():
            member = archive.extractfile(f"package/{inside}")
            assert member is not None, f"{spec} has no file {inside}"
            (VENDOR / name).write_text(_as_module(name, member.read().decode()), encoding="utf-8")


def _as_module(name: str, text: str) -> str:
    if not name.endswith(".js"):
        return text
    text = re.sub(r"//# sourceMappingURL=\S+\s*", "", text)
    text = re.sub(r'from\s*"preact"', 'from"./preact.js"', text)
    return text + "\nexport default uPlot;\n" if name == "uplot.js" else text


if __name__ == "__main__":
    main()
