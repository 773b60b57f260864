"""Checks that what a program says it needs is installed. Nothing is installed on anybody's behalf."""

from __future__ import annotations

import re
from importlib import metadata
from pathlib import Path

from headwater.common.errors import ConfigurationError

_NAME = re.compile(r"^\s*([A-Za-z0-9][A-Za-z0-9._-]*)")


def check_requirements(file: str) -> None:
    """Raise if a package that the requirements file names is not installed in this Python."""
    try:
        lines = Path(file).read_text().splitlines()
    except OSError as error:
        raise ConfigurationError(f"requirements file {file} cannot be read: {error.strerror}") from error
    names = [match[1] for line in lines if (match := _NAME.match(line.split("#")[0]))]
    missing = [name for name in names if not _installed(name)]
    if missing:
        raise ConfigurationError(
            f"requirements file {file} names packages that are not installed: {', '.join(missing)}; run "
            f"'pip install -r {file}' in the Python of the driver and of the executors"
        )


def _installed(name: str) -> bool:
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return True
