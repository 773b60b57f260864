"""What the headwater programs of this folder share."""

from __future__ import annotations

import subprocess
import sys
from contextlib import ExitStack

from benchmarks.yahoo.ads import PER_MS, campaign_views, write_files

__all__ = ["PER_MS", "campaign_views", "start_broker", "write_files"]


def start_broker(stack: ExitStack) -> str:
    """Start the test broker, and return its address."""
    command = [sys.executable, "-m", "headwater.testing.kafka", "ad-events:2"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    stack.enter_context(process)
    assert process.stdin is not None and process.stdout is not None
    stack.callback(process.stdin.close)
    return process.stdout.readline().strip()
