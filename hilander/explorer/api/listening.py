"""Listen on a port, and answer requests until stopped."""

from __future__ import annotations

import socket
from collections.abc import Callable
from types import FrameType
from typing import Any

from hilander.errors import SettingError

# Bytes of the headers of a request: twice the limit of common servers.
_LONGEST_HEAD = 32 * 1024
# Connections that wait to be accepted.
_BACKLOG = 128
# Seconds that an idle connection stays open.
_KEEP_ALIVE_SECONDS = 30


def bind(host: str, port: int, *, exact: bool) -> socket.socket:
    """Bind a port before the server starts, so that a port in use gives a clear error.

    Parameters
    ----------
    host : str
    port : int
    exact : bool
        Whether to raise SettingError if the port is in use. Otherwise a free port is taken.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise SettingError(
            f"--host {host!r} is not an address of this machine ({error}); use 127.0.0.1"
        ) from error
    family, kind, protocol, _, address = found[0]
    for wanted in (address, (address[0], 0, *address[2:])):
        listening = socket.socket(family, kind, protocol)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(wanted)
        except OSError as error:
            listening.close()
            if exact or wanted != address:
                raise SettingError(
                    f"port {port} of {host} cannot be used ({error.strerror}); "
                    "choose another with --port"
                ) from error
        else:
            return listening
    raise AssertionError("the loop returns or raises")


def serve(
    app: Any,
    listening: socket.socket,
    ready: Callable[[], None] | None = None,
    stopping: Callable[[], None] | None = None,
) -> None:
    """Answer requests until stopped.

    Parameters
    ----------
    app : ASGI application
    listening : socket
        Result of `bind`.
    ready : callable, optional
        Called when the server is about to answer.
    stopping : callable, optional
        Called when the server is about to stop, so that open streams can end.
    """
    import uvicorn

    listening.listen(_BACKLOG)
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        h11_max_incomplete_event_size=_LONGEST_HEAD,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
    )
    if ready is not None:
        ready()

    class Server(uvicorn.Server):
        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            if stopping is not None:
                stopping()
            super().handle_exit(sig, frame)

    Server(config).run(sockets=[listening])


def make_url(host: str, listening: socket.socket, token: str | None) -> str:
    """Return the URL to open in a browser."""
    port = listening.getsockname()[1]
    shown = {"0.0.0.0": socket.gethostname(), "::": socket.gethostname()}.get(host, host)
    name = f"[{shown}]" if ":" in shown else shown
    return f"http://{name}:{port}/" + (f"?token={token}" if token else "")
