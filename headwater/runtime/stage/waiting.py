"""Waits until a reader has input, or somebody else wants the process's attention."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Sequence

from headwater.common.connector import SplitReader
from headwater.common.machine.descriptors import wait_any

log = logging.getLogger(__name__)


def can_wait(reader: SplitReader) -> bool:
    """Return True if the reader says when it has input."""
    return type(reader).wait_readable is not SplitReader.wait_readable


def wait_for_input(readers: Sequence[SplitReader], deadline: float, wake: int) -> bool:
    """Return True as soon as one of `readers` may have input; False at `deadline`, or once `wake` can be read.

    All of them can wait. Each waits in a thread of its own, unless there is only one. No reader is in use on return.
    """
    if len(readers) == 1:
        return _may_have_input(readers[0], deadline, wake)
    stop, stop_write = os.pipe()
    found, found_write = os.pipe()

    def wait(reader: SplitReader) -> None:
        if _may_have_input(reader, deadline, stop):
            os.write(found_write, b".")

    threads = [threading.Thread(target=wait, args=(reader,), daemon=True) for reader in readers]
    try:
        for thread in threads:
            thread.start()
        return found in wait_any([found, wake], deadline - time.monotonic())
    finally:
        os.write(stop_write, b".")
        for thread in threads:
            thread.join()
        for descriptor in (stop, stop_write, found, found_write):
            os.close(descriptor)


def _may_have_input(reader: SplitReader, deadline: float, wake: int) -> bool:
    """An error says that it may: whatever is wrong, `read_batch` meets it in an epoch, which can report it."""
    try:
        return reader.wait_readable(deadline, wake)
    except Exception:
        log.warning("%s cannot wait for input", type(reader).__name__, exc_info=True)
        return True
