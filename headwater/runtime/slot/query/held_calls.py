"""Socket calls that keep Python's lock.

The `socket` module releases the lock around every call, even one that returns at once. While a slot processes, a thread
that released the lock gets it back after a switch interval. A query that is received and answered with that module
waits for three intervals. One that keeps the lock until its answer is sent waits for one, as do all that arrived with
it.

These calls never block. A call that would block goes to the `socket` module instead.
"""

from __future__ import annotations

import ctypes
import socket
from collections.abc import Callable, Iterator

_library = ctypes.PyDLL(None)  # unlike CDLL it keeps the lock
_send = _library.send
_send.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int)
_send.restype = ctypes.c_ssize_t
_recv = _library.recv
_recv.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
_recv.restype = ctypes.c_ssize_t

_accept = getattr(_library, "accept4", None)  # Linux has it

_AT_ONCE = socket.MSG_DONTWAIT
_SILENTLY = socket.MSG_DONTWAIT | getattr(socket, "MSG_NOSIGNAL", 0)
_BUFFER = 1 << 14


def accepted(listener: socket.socket) -> Iterator[socket.socket]:
    """Yield the connections that have arrived. They and the listener do not wait."""
    while True:
        if _accept is None:
            try:
                sock = listener.accept()[0]
            except BlockingIOError:
                return
            sock.setblocking(False)
            yield sock
            continue
        found = _accept(listener.fileno(), None, None, socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
        if found < 0:
            return
        yield socket.socket(listener.family, listener.type | socket.SOCK_NONBLOCK, listener.proto, found)


def receiving(sock: socket.socket) -> Callable[[int], bytes]:
    """Return what does as `sock.recv`, for a socket with something to read."""
    buffer = ctypes.create_string_buffer(_BUFFER)
    content = memoryview(buffer)

    def recv(size: int) -> bytes:
        found = _recv(sock.fileno(), buffer, min(size, _BUFFER), _AT_ONCE)
        if found < 0:
            return sock.recv(size)
        data = bytes(content[:found])
        while found == _BUFFER and len(data) < size:
            found = _recv(sock.fileno(), buffer, min(size - len(data), _BUFFER), _AT_ONCE)
            data += bytes(content[: max(0, found)])
        return data

    return recv


def send_now(sock: socket.socket, message: bytes) -> bytes:
    """Send as much as the other end takes at once. Return the rest. Raises OSError if the connection is lost."""
    sent = _send(sock.fileno(), message, len(message), _SILENTLY)
    if sent < 0:
        try:
            sent = sock.send(message, _SILENTLY)  # it says what is wrong
        except BlockingIOError:
            sent = 0
    return message[sent:]


def send_at_once(sock: socket.socket, message: bytes, seconds: float) -> None:
    """Do as `sock.sendall`. What the other end does not take at once, it must take within `seconds`."""
    rest = send_now(sock, message)
    if rest:
        sock.settimeout(seconds)
        try:
            sock.sendall(rest)
        finally:
            sock.settimeout(0.0)
