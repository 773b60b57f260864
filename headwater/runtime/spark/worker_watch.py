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
    beats, heart = os.pipe()
    try:
        # Not in the thread: a function that keeps Python's lock would not let it begin.
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", watchdog.__file__, str(os.getpid()), str(seconds)],
            stdin=beats,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:  # then nobody watches, as without this
        os.close(heart)
        return
    finally:
        os.close(beats)
    threading.Thread(target=_beat, args=(process, heart, seconds), name="heart", daemon=True).start()


def _beat(process: subprocess.Popen[bytes], heart: int, seconds: float) -> None:
    """Show the watchdog that this process lives, whatever a user's function does in another thread."""
    pause = threading.Event()
    try:
        process.wait()  # the watchdog is a child of it, and no longer one of this process
        while _watched == (os.getpid(), seconds):
            os.write(heart, b".")
            pause.wait(seconds / watchdog.LOOKS / 2)
    except OSError:
        pass  # the watchdog is gone
    finally:
        os.close(heart)
