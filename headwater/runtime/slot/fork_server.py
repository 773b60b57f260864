"""The process that slots are forked from: ``python -m headwater.runtime.slot.fork_server``, one per executor.

Starting Python and importing headwater takes a quarter of a second of processor time. The fork server pays for it once:
a forked slot starts in milliseconds, and slots share the memory of the modules. The fork server loads nothing of a job.
Its only thread accepts a connection, forks, and keeps no trace of the slot.
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
"""A fork server ends after this long without a request. The next request for a slot starts another one."""

USUAL_MODULES = (
    "headwater.datastream",
    "headwater.operators.process",
    "headwater.state.heap.backend",
    "headwater.state.rocksdb.backend",
)
"""Modules that most slots need and that this module does not import itself."""


@dataclass(frozen=True)
class SlotRequest:
    """What a new slot needs to know. Two file descriptors travel with it: for the answer, and for printed output."""

    config: SlotConfig
    directory: str
    import_path: list[str]


def send_request(sock: socket.socket, request: SlotRequest, answer: int, output: int) -> None:
    """Ask for a slot. The slot writes its address, or the reason why it did not start, to the descriptor `answer`."""
    socket.send_fds(sock, [b"."], [answer, output])
    sock.sendall(pickle.dumps(request))


def main() -> None:
    """Fork slots until the watched process ends or no request comes for `IDLE_SECONDS`.

    Arguments: the path to listen at, the pid to watch, the descriptor to write to once it listens.
    """
    path, watched, listening = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    for module in USUAL_MODULES:
        importlib.import_module(module)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for slots, so they must not become zombies
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(64)
    gc.collect()
    gc.freeze()  # otherwise the first collection in a slot would write to, and so copy, the shared pages
    os.write(listening, b".")
    os.close(listening)
    pidfd = open_pidfd(watched)
    poller = select.poll()  # `select.select` refuses descriptors above 1,023
    for descriptor in (listener.fileno(), *(() if pidfd is None else (pidfd,))):
        poller.register(descriptor, select.POLLIN)
    while [ready for ready, _ in poller.poll(IDLE_SECONDS * 1000)] == [listener.fileno()]:
        _fork_slot(listener)
    with contextlib.suppress(OSError):
        os.unlink(path)
    with contextlib.suppress(BlockingIOError):  # serve requests that came just before the unlink
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
    """Run the slot in the forked child. Does not return."""
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
