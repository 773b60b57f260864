"""Card payments with state, timers, a slot killed half way, and a proof: `python -m headwater.demo`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from rich.console import Console

from headwater.common.errors import HeadwaterError
from headwater.common.machine.java import require_java
from headwater.demo.run import DemoSettings, run


def main(arguments: Sequence[str] | None = None) -> int:
    defaults = DemoSettings()
    parser = argparse.ArgumentParser(prog="python -m headwater.demo", description=__doc__)
    parser.add_argument("--payments", type=int, default=defaults.count, help=f"how many (default {defaults.count})")
    parser.add_argument(
        "--rate", type=float, default=defaults.rate_per_second, help="payments per second at most; 0: no limit"
    )
    parser.add_argument("--parallelism", type=int, default=defaults.parallelism)
    parser.add_argument("--no-kill", action="store_true", help="let all slots live")
    chosen = parser.parse_args(arguments)
    settings = DemoSettings(chosen.payments, chosen.rate or None, chosen.parallelism, not chosen.no_kill)
    console = Console()
    try:
        require_java()
        return 0 if run(settings, console) else 1
    except HeadwaterError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
