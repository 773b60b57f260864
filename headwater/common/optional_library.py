"""Libraries that only some jobs need: loaded where they are used, and missed with words that help."""

from __future__ import annotations

import importlib
from typing import Any

from headwater.common.errors import ConfigurationError


def optional_library(module: str, extra: str, purpose: str) -> Any:
    """Import `module`, which the extra `extra` of headwater installs.

    :param purpose: what needs it, the beginning of the error's text: "Avro".
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        if error.name is None or error.name.partition(".")[0] != package:
            raise  # the library is there; one that it needs itself is not
        raise ConfigurationError(
            f"{purpose} needs the Python package {package!r}, which is not installed; run pip install "
            f"'headwater[{extra}]' for the driver and the executors"
        ) from error
