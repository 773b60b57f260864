"""Card payments with state, timers, a slot killed half way, and a proof that nothing was lost."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from rich.console import Console

from headwater.common.errors import HeadwaterError
from headwater.common.machine.java import require_java
from headwater.demo.live import LIVE_RATE, run_live
from headwater.demo.run import DemoSettings, run


def main(arguments: Sequence[str] | None = None) -> int:
    defaults = DemoSettings()
    parser = argparse.ArgumentParser(prog="headwater demo", description=__doc__)
    parser.add_argument("--payments", type=int, default=defaults.count, help=f"how many (default {defaults.count})")
    parser.add_argument(
        "--rate",
        type=float,
        help=f"payments per second; 0: no limit (default {defaults.rate_per_second:,.0f}, live {LIVE_RATE:,.0f})",
    )
    parser.add_argument("--parallelism", type=int, default=defaults.parallelism, help="partitions of each operator")
    parser.add_argument("--no-kill", action="store_true", help="let all slots live")
    parser.add_argument("--live", action="store_true", help="no end: run until Ctrl-C, to look at the dashboard")
    chosen = parser.parse_args(arguments)
    usual = LIVE_RATE if chosen.live else defaults.rate_per_second
    settings = DemoSettings(
        count=None if chosen.live else chosen.payments,
        rate_per_second=usual if chosen.rate is None else chosen.rate or None,
        parallelism=chosen.parallelism,
        kill=not chosen.no_kill and not chosen.live,
    )
    console = Console()
    try:
        require_java()
        if chosen.live:
            run_live(settings, console)
            return 0
        return 0 if run(settings, console) else 1
    except HeadwaterError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
