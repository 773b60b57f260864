"""Finds the Java that Spark runs on, or says in one line what to install.

The same rule for shells, before any Python is set up: `scripts/check-java.sh`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping

from headwater.common.errors import ConfigurationError

MINIMUM_MAJOR = 17
"""Spark 4 does not start on anything older."""

_HINT = f"Install e.g. openjdk-{MINIMUM_MAJOR}-jre-headless and set JAVA_HOME"
_VERSION = re.compile(r' version "(?P<version>[^"]+)"')
_TIMEOUT_S = 30


def require_java(environ: Mapping[str, str] | None = None) -> str:
    """Return the path of a Java that Spark can run on: JAVA_HOME's, else the first on PATH.

    Called before Spark starts. A JAVA_HOME that does not fit is an error, because Spark's own scripts would use it.

    Raises:
        ConfigurationError: one line that tells what was found and what to install.
    """
    environ = os.environ if environ is None else environ
    java = _find(environ)
    version = _version_of(java)
    if _major(version) < MINIMUM_MAJOR:
        raise _error(f"found {version} at {java}")
    return java


def _find(environ: Mapping[str, str]) -> str:
    if home := environ.get("JAVA_HOME"):
        java = os.path.join(home, "bin", "java")
        if not os.access(java, os.X_OK) or os.path.isdir(java):
            raise _error(f"JAVA_HOME is '{home}', which has no bin/java")
        return java
    found = shutil.which("java", path=environ.get("PATH", os.defpath))
    if found is None:
        raise _error("found none")
    return found


def _version_of(java: str) -> str:
    try:
        ended = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    except (OSError, subprocess.SubprocessError) as problem:
        raise _error(f"'{java} -version' does not run ({problem})") from None
    # Java prints it to standard error; options picked up from the environment may come on lines before it.
    match = _VERSION.search(ended.stderr) or _VERSION.search(ended.stdout)
    if match is None:
        raise _error(f"'{java} -version' names no version")
    return match["version"]


def _major(version: str) -> int:
    """17 of "17.0.15", 22 of "22-ea", 8 of "1.8.0_392" (Java counted like that until 8); 0 if it says nothing."""
    match = re.match(r"(?:1\.)?(\d+)", version)
    return int(match[1]) if match else 0


def _error(found: str) -> ConfigurationError:
    return ConfigurationError(f"headwater needs Java {MINIMUM_MAJOR} or newer: {found}. {_HINT}")
