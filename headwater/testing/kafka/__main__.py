"""A broker in a process of its own: `python -m headwater.testing.kafka orders:3 counts:1` (topic:partitions).

It prints its address, and ends when its standard input does, or on Ctrl-C.
"""

from __future__ import annotations

import contextlib
import sys

from headwater.testing.kafka.broker import KafkaBroker


def main() -> None:
    named = (argument.rpartition(":") for argument in sys.argv[1:])
    with KafkaBroker({topic: int(partitions) for topic, _, partitions in named}) as broker:
        print(broker.bootstrap_servers, flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            sys.stdin.read()


if __name__ == "__main__":
    main()
