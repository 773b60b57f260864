"""Has this Python worker watched: if it is stopped, or hangs, it is killed, and the epoch's attempt fails.

Spark waits for a worker as long as it takes. That is right for one that is slow, and would halt the job for one that
was stopped (docs/decisions/0003-no-spark-retries.md: then the driver starts the epoch over).
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading

from headwater.common import watchdog

_watched: tuple[int, float] | None = None
"""(process, seconds): a fork of this process is not watched because this one is."""


def watch_this_worker(seconds: float) -> None:
    """Have a process of its own watch this one, from now on. Called at the start of each task; does it once."""
    global _watched
    if _watched == (os.getpid(), seconds) or not os.path.exists(watchdog.__file__):
        return
    _watched = (os.getpid(), seconds)
    threading.Thread(target=_beat, args=(seconds,), name="heart", daemon=True).start()


def _beat(seconds: float) -> None:
    """Start the watchdog, and show it that this process lives: whatever a user's function does in another thread."""
    beats, heart = os.pipe()
    try:
        with subprocess.Popen(
            [sys.executable, "-I", "-S", watchdog.__file__, str(os.getpid()), str(seconds)],
            stdin=beats,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        ):
            os.close(beats)
        pause = threading.Event()
        while _watched == (os.getpid(), seconds):
            os.write(heart, b".")
            pause.wait(seconds / watchdog.LOOKS / 2)
    except OSError:
        pass  # the watchdog is gone, or could not be started: then nobody watches, as without one
    finally:
        os.close(heart)
