"""Client libraries are optional: what to do if one is missing."""

from __future__ import annotations

import importlib
from typing import Any

from headwater.common.errors import ConfigurationError


def library(module: str, connector: str, extra: str) -> Any:
    """Return the module of that name, or say how to get it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise ConfigurationError(
            f"the {connector} connector needs the package {module}: pip install 'headwater[{extra}]'"
        ) from None
