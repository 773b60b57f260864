"""Other processes of this machine."""

from __future__ import annotations

import os


def alive(pid: int) -> bool:
    """Whether process `pid` is there, whoever's it is. A number is used again: it may be another process by now."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # another user's
    return True
