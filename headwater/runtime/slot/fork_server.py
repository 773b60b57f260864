"""The process that slots are forked from: ``python -m headwater.runtime.slot.fork_server``, one per executor.

Starting Python and importing headwater takes a quarter of a second of processor time. The fork server pays it once; a
slot that it forks is there in some milliseconds, be it a partition's first or one that takes a dead one's place. Slots
share the memory of the modules, too. Nothing of a job is loaded here, and there is one thread: it accepts a connection,
forks, and has forgotten it.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import pickle
import select
import signal
import socket
import sys
import traceback
from dataclasses import dataclass

from headwater.common.machine.processes import open_pidfd
from headwater.runtime.slot.process import SlotConfig, run_slot

IDLE_SECONDS = 60
"""A fork server that nobody asks for so long ends. The next slot starts another one."""

USUAL_MODULES = (
    "headwater.datastream",
    "headwater.operators.process",
    "headwater.state.heap.backend",
    "headwater.state.rocksdb.backend",
)
"""What most slots need of headwater beside what a slot itself is made of."""


@dataclass(frozen=True)
class SlotRequest:
    """All that a slot needs to know. Two descriptors go with it: for its answer, and for what it prints."""

    config: SlotConfig
    directory: str
    import_path: list[str]


def send_request(sock: socket.socket, request: SlotRequest, answer: int, output: int) -> None:
    """Ask for a slot. It says on `answer` that it listens, or why it does not."""
    socket.send_fds(sock, [b"."], [answer, output])
    sock.sendall(pickle.dumps(request))


def main() -> None:
    """Listen at a path until a process is gone or nobody asks any more."""
    path, watched, listening = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    for module in USUAL_MODULES:
        importlib.import_module(module)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for slots: none must become a zombie
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(64)
    gc.collect()
    gc.freeze()  # or the first collection in a slot would write to the pages that it shares
    os.write(listening, b".")
    os.close(listening)
    pidfd = open_pidfd(watched)
    descriptors: list[socket.socket | int] = [listener] if pidfd is None else [listener, pidfd]
    while select.select(descriptors, [], [], IDLE_SECONDS)[0] == [listener]:
        _fork_slot(listener)
    with contextlib.suppress(OSError):
        os.unlink(path)
    with contextlib.suppress(BlockingIOError):  # whoever asked just before the path went
        listener.setblocking(False)
        while True:
            _fork_slot(listener)


def _fork_slot(listener: socket.socket) -> None:
    sock, _ = listener.accept()
    with sock:
        if os.fork() == 0:
            listener.close()
            _become_slot(sock)


def _become_slot(sock: socket.socket) -> None:
    """In the child. Does not return."""
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        sock.setblocking(True)
        _, (answer, output), _, _ = socket.recv_fds(sock, 1, 2)
        for standard in (sys.stdout, sys.stderr):
            os.dup2(output, standard.fileno())
        os.close(output)
        with sock.makefile("rb") as stream:
            request: SlotRequest = pickle.load(stream)
        sock.close()
        os.chdir(request.directory)
        sys.path[:] = request.import_path
        importlib.invalidate_caches()
        run_slot(request.config, answer)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)


if __name__ == "__main__":
    main()
