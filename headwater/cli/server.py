"""`headwater server`: takes programs, runs each in a process of its own, and answers for them over HTTP."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from headwater.cli.usage import Parser, UsageError
from headwater.common.config_options import (
    LOG_LEVEL,
    REST_BIND_ADDRESS,
    REST_PORT,
    SERVER_STORAGE,
    SERVER_TLS_CERT,
    SERVER_TLS_KEY,
    SERVER_TOKEN_FILE,
    resolve,
)
from headwater.common.configuration import Configuration

_OPTIONS = {
    "host": (REST_BIND_ADDRESS, "ADDRESS", "where to listen; another address than this machine's own needs a token"),
    "port": (REST_PORT, "PORT", "the port, a range, or 0 for any"),
    "storage": (SERVER_STORAGE, "DIR", "where jobs are kept; a second server on it stands by and takes over"),
    "token_file": (SERVER_TOKEN_FILE, "FILE", "a file with the token that clients must send"),
    "tls_cert": (SERVER_TLS_CERT, "FILE", "serve HTTPS with this certificate"),
    "tls_key": (SERVER_TLS_KEY, "FILE", "and this key"),
}
"""{option: (setting, placeholder, help)}"""


def server(arguments: Sequence[str]) -> int:
    """Serve until SIGTERM or Ctrl-C. The jobs go on; the next server on the same storage finds them."""
    words = list(arguments)
    if words[:1] == ["start"]:  # optional, as people type it
        words = words[1:]
    parser = Parser(
        prog="headwater server",
        description=(
            "Run jobs that are submitted with headwater run -m HOST:PORT, each in its own process. The jobs outlive "
            "the server: started again on the same storage it finds them, and a second server there takes over."
        ),
    )
    for name, (option, placeholder, text) in _OPTIONS.items():
        parser.add_argument(f"--{name.replace('_', '-')}", metavar=placeholder, help=f"{text} ({option.key})")
    parser.add_argument("-D", "--define", metavar="KEY=VALUE", action="append", help="a setting; see headwater config")
    given = parser.parse_args(words)
    settings = Configuration()
    for pair in given.define or ():
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise UsageError(f"headwater server: -D {pair}: expected key=value, for example -D rest.port=8082")
        settings.set_string(key.strip(), value)
    for name, (option, _, _) in _OPTIONS.items():
        if (value := getattr(given, name)) is not None:
            settings.set_string(option.key, value)
    configuration = resolve(settings)
    from headwater.runtime.job.launcher import python_log_level
    from headwater.server.session_server import serve

    logging.basicConfig(
        level=python_log_level(configuration.get(LOG_LEVEL)), format="%(asctime)s %(levelname)s %(name)s %(message)s"
    )
    serve(configuration)
    return 0
