"""Ships the program's own Python files to the workers and slots that run its functions."""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Iterable
from pathlib import Path

from pyspark import SparkContext

_shipped: set[tuple[str, str]] = set()  # (application, file)


def ship(context: SparkContext, files: Iterable[str]) -> None:
    """Make files, zips and directories importable in Python workers, and in the slots that workers start."""
    for name in files:
        path = Path(name)
        if (context.applicationId, name) in _shipped:
            continue
        context.addPyFile(str(_zipped(path) if path.is_dir() else path))
        _shipped.add((context.applicationId, name))


def zip_package(package: Path, archive: Path) -> Path:
    """Zip `package` with all below it, so that Python can import it from `archive` under its own name."""
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for path in sorted(package.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                file.write(path, path.relative_to(package.parent))
    return archive


def _zipped(directory: Path) -> Path:
    archive = Path(tempfile.mkdtemp(prefix="headwater-files-")) / f"{directory.name}.zip"
    if (directory / "__init__.py").exists():
        return zip_package(directory, archive)
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:  # a folder of modules: its content is importable
        for path in sorted(directory.rglob("*.py")):
            file.write(path, path.relative_to(directory))
    return archive
