"""Makes a program's Python files importable in this process."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path


def make_importable(files: Sequence[str]) -> None:
    """Extend `sys.path` for modules, packages, folders of modules, and zips."""
    for name in files:
        path = Path(name)
        is_entry = (path.is_dir() and not (path / "__init__.py").exists()) or path.suffix in (".zip", ".egg", ".whl")
        entry = str(path if is_entry else path.parent)
        if entry not in sys.path[1:]:  # the first one is about to be the program's own folder
            sys.path.append(entry)
