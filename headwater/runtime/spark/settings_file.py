"""Spark's settings on the way to its JVM: in a file that only this user can read. A command line is for all to see.

Any of them may be a secret, whatever its name: a key of a store, a password, a token.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

_TO_ESCAPE = re.compile(r"[\\\n\r\t\f=:#! ]")
_ESCAPED = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f"}


def options_for_spark_submit(confs: Mapping[str, str], directory: str | Path) -> tuple[str, ...]:
    """What tells spark-submit `confs`. Its file is in `directory`: remove it when the JVM has started."""
    path = Path(directory) / "settings.properties"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.writelines(f"{_escaped(key)}={_escaped(value)}\n" for key, value in confs.items())
    # The "extra" one: what the user's own properties file and Spark's defaults say stays as it is.
    return ("--extra-properties-file", str(path))


def _escaped(text: str) -> str:
    """As java.util.Properties reads it."""
    return _TO_ESCAPE.sub(lambda match: _ESCAPED.get(match[0], f"\\{match[0]}"), text)
