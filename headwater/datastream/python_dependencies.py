"""What user code needs besides itself: files, packages, an interpreter. All of it becomes settings of the job.

* Python files are in `headwater.python.files`: the runtime makes them importable where functions run.
* A requirements file is in `headwater.python.requirements`: what it lists must be installed there already.
* Archives, jars and the interpreter are Spark's own settings (`spark.archives`, `spark.jars`, `spark.pyspark.python`).
"""

from __future__ import annotations

import os
import re
from glob import glob

from headwater.common.config_options import PYTHON_FILES, PYTHON_REQUIREMENTS
from headwater.common.configuration import Configuration
from headwater.common.errors import ConfigurationError
from headwater.datastream.no_effect import warn_no_effect

_FILE = re.compile("^file:(//)?")
_ADDRESS = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]+:")


class PythonDependencies:
    """Mix-in of the environment; keeps everything in its configuration."""

    _configuration: Configuration

    def add_python_file(self, file_path: str) -> None:
        """Make a Python file, a package directory or a zip importable for functions, wherever they run."""
        files = self._configuration.get(PYTHON_FILES) or []
        self._configuration.set(PYTHON_FILES, [*files, _existing("add_python_file", file_path)])

    def set_python_requirements(self, requirements_file_path: str, requirements_cache_dir: str | None = None) -> None:
        """Name the requirements.txt of the functions: what it lists must be installed where they run."""
        if requirements_cache_dir is not None:
            warn_no_effect("requirements_cache_dir", "packages are expected to be installed where functions run")
        self._configuration.set(PYTHON_REQUIREMENTS, _existing("set_python_requirements", requirements_file_path))

    def add_python_archive(self, archive_path: str, target_dir: str | None = None) -> None:
        """Have an archive unpacked where functions run, as directory `target_dir` or under its own name."""
        archive = _existing("add_python_archive", archive_path)
        self._append("spark.archives", archive if target_dir is None else f"{archive}#{target_dir}")

    def set_python_executable(self, python_exec: str) -> None:
        """Run functions with this interpreter: it needs headwater, and the same minor version of Python."""
        self._configuration.set_string("spark.pyspark.python", python_exec)

    def add_jars(self, *jars_path: str) -> None:
        """Give Spark these jars (paths or `file://` addresses): drivers and formats that its sources need."""
        for jar in jars_path:
            is_local = jar.startswith("file:") or not _ADDRESS.match(jar)
            self._append("spark.jars", _existing("add_jars", _FILE.sub("", jar)) if is_local else jar)

    def add_classpaths(self, *classpaths: str) -> None:
        """The same as `add_jars`: Spark makes no difference."""
        self.add_jars(*classpaths)

    def _append(self, key: str, value: str) -> None:
        known = self._configuration.get_string(key, "")
        self._configuration.set_string(key, f"{known},{value}" if known else value)


def _existing(method: str, path: str) -> str:
    if not os.path.exists(path) and not glob(path):
        raise ConfigurationError(f"{method}(): there is no file {path!r} (looked from {os.getcwd()})")
    return os.path.abspath(path)
