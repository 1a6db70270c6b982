"""Access checks of the server: hosts, tokens, sizes of requests, headers.

The server reads private data and writes the review, so it only answers its own page:

- the Host header must name this server, which prevents DNS rebinding;
- a request that changes something needs the page token, which other origins cannot read;
- a server that other machines can reach needs an access token for every request.
"""

from __future__ import annotations

import hmac
import ipaddress
import json
import secrets
import socket
from collections.abc import Iterable
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

from hilander.errors import SettingError

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

PAGE_TOKEN_HEADER = "x-hilander-token"
COOKIE = "hilander_access"
# Bytes of the body of a request: the largest action has 10,000 numbers.
MOST_BODY_BYTES = 1 << 20
SAFE_METHODS = ("GET", "HEAD")
# Letters of an access token: fewer could be guessed over a network.
_SHORTEST_TOKEN = 16
_LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data: blob:; connect-src 'self'; font-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}


@dataclass(frozen=True)
class Guard:
    """Rules of access.

    Parameters
    ----------
    hosts : frozenset of str
        Allowed names in the Host header, without port.
    any_address : bool
        Whether any IP address is allowed too. An address is safe: DNS rebinding needs a name.
    access_token : str, optional
        If given, every request needs it.
    page_token : str
        Requests that change something need it.
    """

    hosts: frozenset[str] = frozenset(_LOCAL_NAMES)
    any_address: bool = False
    access_token: str | None = None
    page_token: str = field(default_factory=lambda: secrets.token_urlsafe(24))

    def allows_host(self, header: str) -> bool:
        """Return whether a Host header names this server."""
        try:
            name = urlsplit(f"//{header}").hostname
        except ValueError:
            return False
        if not name or "@" in header or "/" in header:
            return False
        return name.rstrip(".") in self.hosts or (self.any_address and _is_address(name))


def make_guard(host: str, token: str | None = None, allowed: Iterable[str] = ()) -> Guard:
    """Return the rules of access for a server that is bound to a host.

    Parameters
    ----------
    host : str
        Address that the server is bound to.
    token : str, optional
        Access token; required unless the host is a loopback address.
    allowed : iterable of str
        Further names under which browsers reach the server.

    Raises
    ------
    SettingError
        If other machines can reach the server and the token is missing or short.
    """
    local = host == "localhost" or (_is_address(host) and ipaddress.ip_address(host).is_loopback)
    if token is not None and len(token) < _SHORTEST_TOKEN:
        raise SettingError(
            f"a token of {len(token)} letters can be guessed; use at least {_SHORTEST_TOKEN}"
        )
    if local:
        return Guard(frozenset((*_LOCAL_NAMES, *allowed)), access_token=token)
    if token is None:
        raise SettingError(
            f"--host {host} can be reached from other machines and needs --token; "
            f"for example --token {secrets.token_urlsafe(18)}"
        )
    names = {host.lower(), socket.gethostname().lower(), *_LOCAL_NAMES, *allowed}
    return Guard(frozenset(names), any_address=True, access_token=token)


class SafetyMiddleware:
    """Refuse requests that the guard does not allow, and set the headers of every answer.

    Parameters
    ----------
    app : ASGI application
    guard : Guard
    """

    def __init__(self, app: ASGIApp, guard: Guard) -> None:
        self.app = app
        self.guard = guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        headers = {
            name.decode("latin-1").lower(): value.decode("latin-1")
            for name, value in scope["headers"]
        }
        cookie = self._new_cookie(scope)

        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                message.setdefault("headers", [])
                extra = dict(HEADERS)
                given = {name.lower() for name, _ in message["headers"]}
                if b"cache-control" not in given:
                    extra["cache-control"] = "no-store"
                if cookie:
                    extra["set-cookie"] = cookie
                message["headers"] = [
                    *message["headers"],
                    *((name.encode(), value.encode()) for name, value in extra.items()),
                ]
            await send(message)

        refusal = self._refuse(scope, headers, bool(cookie))
        if refusal is not None:
            await _answer(send_safely, *refusal)
            return
        body = await _read_body(receive, headers)
        if body is None:
            text = f"the request is larger than {MOST_BODY_BYTES} bytes; send less at a time"
            await _answer(send_safely, 413, "too_large", text)
            return
        await self.app(scope, _replay(body, receive), send_safely)

    def _refuse(
        self, scope: Scope, headers: dict[str, str], has_token: bool
    ) -> tuple[int, str, str] | None:
        guard = self.guard
        if not guard.allows_host(headers.get("host", "")):
            text = "the Host header does not name this server; open the address that it printed"
            return 421, "wrong_host", text
        if guard.access_token is not None and not has_token:
            given = _cookie_value(headers.get("cookie", ""))
            bearer = headers.get("authorization", "").removeprefix("Bearer ")
            if not _same(given, guard.access_token) and not _same(bearer, guard.access_token):
                return (
                    401,
                    "no_access",
                    "the access token is missing; open the whole address that the explorer printed",
                )
        if scope["method"] in SAFE_METHODS:
            return None
        site = headers.get("sec-fetch-site", "same-origin")
        origin = headers.get("origin")
        own = origin is None or urlsplit(origin).netloc == headers["host"]
        if site not in ("same-origin", "none") or not own:
            return 403, "cross_site", "requests from another site may not change anything"
        if not _same(headers.get(PAGE_TOKEN_HEADER, ""), guard.page_token):
            return 403, "no_token", "the page was loaded from an earlier server; reload it"
        return None

    def _new_cookie(self, scope: Scope) -> str | None:
        """Return the cookie to set if the URL of a request has the access token."""
        token = self.guard.access_token
        if token is None or scope["method"] not in SAFE_METHODS:
            return None
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        if not _same(given, token):
            return None
        return f"{COOKIE}={token}; Path=/; HttpOnly; SameSite=Strict"


async def _read_body(receive: Receive, headers: dict[str, str]) -> bytes | None:
    """Read the body; None if it is too large."""
    length = headers.get("content-length", "0")
    if not length.isascii() or not length.isdigit() or int(length) > MOST_BODY_BYTES:
        return None
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return bytes(body)
        body += message.get("body", b"")
        if len(body) > MOST_BODY_BYTES:
            return None
        if not message.get("more_body", False):
            return bytes(body)


def _replay(body: bytes, receive: Receive) -> Receive:
    given = False

    async def receive_again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive_again


async def _answer(send: Send, status: int, code: str, text: str) -> None:
    body = json.dumps(error_body(code, text)).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def error_body(code: str, text: str) -> dict[str, dict[str, str]]:
    """Return the body of an error."""
    return {"error": {"code": code, "message": text}}


def _cookie_value(header: str) -> str:
    try:
        morsel = SimpleCookie(header).get(COOKIE)
    except CookieError:
        return ""
    return "" if morsel is None else morsel.value


def _same(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode(), wanted.encode())


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
