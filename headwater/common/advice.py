"""Things that users should hear about although the job goes on."""

from __future__ import annotations

import logging
import warnings

_log = logging.getLogger("headwater")


def warn_user(text: str, *, stacklevel: int = 1) -> None:
    """Say `text` as a Python warning, and in the log if the program has set one up.

    `stacklevel` 1 is the caller of the function that calls this one: the line that should be changed.
    """
    if _log.hasHandlers():
        _log.warning(text)
    warnings.warn(text, UserWarning, stacklevel=stacklevel + 2)
