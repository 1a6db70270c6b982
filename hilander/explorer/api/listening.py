"""Listen on a port, and answer requests until stopped."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

from hilander.errors import SettingError

_LONGEST_HEAD = 32 * 1024


def bind(host: str, port: int, *, exact: bool) -> socket.socket:
    """Take a port before the server starts, so that a taken one is told plainly.

    Parameters
    ----------
    host : str
    port : int
    exact : bool
        Whether another port will not do.
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


def serve(app: Any, listening: socket.socket, ready: Callable[[], None] | None = None) -> None:
    """Answer requests until stopped.

    Parameters
    ----------
    app : ASGI application
    listening : socket
        As `bind` gives it.
    ready : callable, optional
        Called once the server is about to answer.
    """
    import uvicorn

    listening.listen(128)
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        h11_max_incomplete_event_size=_LONGEST_HEAD,
        timeout_keep_alive=30,
    )
    if ready is not None:
        ready()
    uvicorn.Server(config).run(sockets=[listening])


def address_of(host: str, listening: socket.socket, token: str | None) -> str:
    """Give the URL to open."""
    port = listening.getsockname()[1]
    shown = {"0.0.0.0": socket.gethostname(), "::": socket.gethostname()}.get(host, host)
    name = f"[{shown}]" if ":" in shown else shown
    return f"http://{name}:{port}/" + (f"?token={token}" if token else "")
