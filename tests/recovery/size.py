"""How large a run is. The environment variable CHAOS is `full`, or a number of kills per step; without it, short."""

from __future__ import annotations

import os

_CHAOS = os.environ.get("CHAOS", "1")
KILLS = 30 if _CHAOS == "full" else int(_CHAOS)
"""Per step."""
DOWN_SECONDS = 60 if _CHAOS == "full" else 3
"""How long a server is away."""
