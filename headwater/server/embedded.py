"""The server in a thread: of a driver (`headwater run`), or of the session server.

It installs no signal handlers, writes no log of requests, and sleeps while nobody asks.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import socket
import threading

import uvicorn

from headwater.common.errors import ConfigurationError, HeadwaterError
from headwater.server.app import App
from headwater.server.limited_http import LimitedProtocol
from headwater.server.rest_settings import RestSettings

log = logging.getLogger(__name__)

MOST_CONNECTIONS = 1000
STOP_SECONDS = 5


class EmbeddedServer:
    """Serves an app from `start` to `stop`."""

    def __init__(self, settings: RestSettings, app: App) -> None:
        self._settings = settings
        self._app = app
        self._server: _QuietServer | None = None
        self._thread: threading.Thread | None = None
        self.port = 0

    @property
    def address(self) -> str:
        """The URL to print: `http://127.0.0.1:8081`."""
        scheme = "https" if self._settings.tls_cert else "http"
        host = self._settings.gate.bind_address
        return f"{scheme}://{f'[{host}]' if ':' in host else host}:{self.port}"

    def start(self) -> None:
        """Listen, and return when requests are answered. Raises HeadwaterError if no port is free."""
        listener = self._listen()
        self.port = listener.getsockname()[1]
        server = _QuietServer(
            uvicorn.Config(
                self._app,
                http=LimitedProtocol,
                ws="none",
                lifespan="off",
                log_config=None,
                log_level="critical",  # the app logs what it has to say
                access_log=False,
                server_header=False,
                date_header=False,
                proxy_headers=False,
                limit_concurrency=MOST_CONNECTIONS,
                timeout_graceful_shutdown=STOP_SECONDS,
                ssl_certfile=self._settings.tls_cert,
                ssl_keyfile=self._settings.tls_key,
            )
        )
        try:
            server.config.load()
        except Exception as error:
            listener.close()
            raise ConfigurationError(f"the server's certificate and key cannot be used: {error}") from None
        self._server = server
        self._thread = threading.Thread(target=self._run, args=(server, listener), name="rest", daemon=True)
        self._thread.start()
        server.ready.wait()
        if server.problem is not None:
            self.stop()
            raise HeadwaterError(f"the REST server did not start: {server.problem}")

    def stop(self) -> None:
        """Close the port, let answers that are under way go out, and end the thread. May be called twice."""
        server, thread = self._server, self._thread
        if server is None or thread is None:
            return
        server.stop()
        thread.join()
        self._server = self._thread = None

    def _run(self, server: _QuietServer, listener: socket.socket) -> None:
        try:
            asyncio.run(server.serve(sockets=[listener]))
        except BaseException as error:
            server.problem = error
            log.exception("the REST server ended")
        finally:
            listener.close()
            server.ready.set()

    def _listen(self) -> socket.socket:
        address = self._settings.gate.bind_address
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        for port in self._settings.ports:
            try:
                return socket.create_server((address, port), family=family, backlog=128)
            except OSError as error:
                if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                    raise ConfigurationError(f"the REST server cannot listen on {address}: {error.strerror}") from None
        tried = f"{self._settings.ports[0]} to {self._settings.ports[-1]}"
        raise ConfigurationError(f"no port from {tried} on {address} is free for the REST server; set rest.port")


class _QuietServer(uvicorn.Server):
    """uvicorn's server, but it waits for an event instead of looking ten times a second whether it shall stop."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = threading.Event()
        self.problem: BaseException | None = None
        self._stopped: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._stopped, self._loop = asyncio.Event(), asyncio.get_running_loop()
        await super().startup(sockets)
        self.ready.set()

    async def main_loop(self) -> None:
        assert self._stopped is not None
        await self._stopped.wait()

    def stop(self) -> None:
        """May be called from any thread, also after the server has ended."""
        self.ready.wait()
        loop, stopped = self._loop, self._stopped
        if loop is not None and stopped is not None and not loop.is_closed():
            with contextlib.suppress(RuntimeError):  # it has just ended
                loop.call_soon_threadsafe(stopped.set)
