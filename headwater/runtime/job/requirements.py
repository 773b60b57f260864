"""Checks that the packages of a program's requirements file are installed. Installs nothing."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement

from headwater.common.errors import ConfigurationError

_COMMENT = re.compile(r"(^|\s)#.*$")
_INCLUDED = re.compile(r"^(?:-r\s*|--requirement[\s=]\s*)(\S+)$")
_PIP_OPTIONS = re.compile(r"\s--?[a-z][a-z-]*[= ].*$")
"""Options that may follow a requirement on its line, such as --hash."""
_PATH = re.compile(r"^[^\s;@]*[/\\]|\.(whl|zip|tar\.gz)$")


def check_requirements(file: str) -> None:
    """Raise ConfigurationError if this Python lacks a package of the requirements file, or has another version of it.

    Obeys markers and reads included files. Ignores paths, addresses without a package name, and pip's own options.
    """
    missing: list[str] = []
    others: list[str] = []
    for requirement in dict.fromkeys(_requirements(Path(file), ())):
        version = _installed_version(requirement.name)
        if version is None:
            missing.append(_text(requirement))
        elif not requirement.specifier.contains(version, prereleases=True):
            others.append(f"{requirement.name} is {version}, expected {requirement.specifier}")
    if missing or others:
        found = [f"not installed: {', '.join(missing)}"] if missing else []
        found += [f"of another version: {'; '.join(others)}"] if others else []
        raise ConfigurationError(
            f"requirements file {file} is not fulfilled by {sys.executable}: {'; '.join(found)}; run "
            f"'pip install -r {file}' in the Python of the driver and of the executors"
        )


def _requirements(file: Path, including: tuple[Path, ...]) -> Iterator[Requirement]:
    """Yield the requirements whose markers apply to this machine."""
    for number, line in _lines(file, including):
        included = _INCLUDED.match(line)
        if included is not None:
            inner = Path(os.path.normpath(file.parent / included[1]))
            if inner not in (*including, file):
                yield from _requirements(inner, (*including, file))
            continue
        if line.startswith("-") or _PATH.search(line.split(" ")[0]):
            continue
        text = _PIP_OPTIONS.sub("", line)
        try:
            requirement = Requirement(text)
        except InvalidRequirement as error:
            reason = str(error).splitlines()[0]
            raise ConfigurationError(
                f"requirements file {file}, line {number}: {text!r} is no requirement ({reason}); expected a package "
                "with or without versions, such as 'numpy>=1.26,<3'"
            ) from None
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            yield requirement


def _lines(file: Path, including: tuple[Path, ...]) -> Iterator[tuple[int, str]]:
    """Yield (number, content) of each line that is not empty. A line that ends with a backslash continues."""
    try:
        lines = file.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        origin = f", which {including[-1]} includes," if including else ""
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ConfigurationError(f"requirements file {file}{origin} cannot be read: {reason}") from error
    begun = ""
    for number, line in enumerate(lines, 1):
        begun += _COMMENT.sub("", line)
        if begun.endswith("\\"):
            begun = begun[:-1] + " "
            continue
        if begun.strip():
            yield number, begun.strip()
        begun = ""


def _installed_version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _text(requirement: Requirement) -> str:
    return f"{requirement.name}{requirement.specifier}"
