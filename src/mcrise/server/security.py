"""Who may ask the server, and the headers that keep its pages to themselves."""

import asyncio
import contextlib
import hmac
import ipaddress
import logging
import time
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit

from starlette.responses import JSONResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.auto import AutoHTTPProtocol

HALF_SECONDS = 10.0  # in which the head of a request must have come
MOST_HALF = 64  # connections that have been silent for longer than
BRIEF_SECONDS = 1.0  # in which the bytes that a connection came with are read
MOST_OPEN = 400  # and never more than half the files that this process may open
MOST_LOGGED = 5  # lines of a log that begin alike,
LOG_SECONDS = 60.0  # in so many seconds


def _room() -> int:
    """How many connections there may be."""
    with contextlib.suppress(ImportError):
        import resource

        return max(16, min(MOST_OPEN, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2))
    return MOST_OPEN


ROOM = _room()  # now: when many connections have come, no file may be left to import with


class Connection(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """A connection that goes when it says half a request and no more."""

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self.waited: asyncio.TimerHandle | None = None
        known = self.server_state.__dict__
        self.halves: dict[Connection, float] = known.setdefault("halves", {})  # since when
        self.all: dict[Connection, None] = known.setdefault("all", {})
        self.all[self] = None
        if len(self.all) > ROOM:
            next(iter(self.halves or self.all)).drop()
        self.look()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self.look()

    def connection_lost(self, reason: Exception | None) -> None:
        super().connection_lost(reason)
        self.forget()

    def look(self) -> None:
        """Give the rest of a request that has begun, or none at all, so many seconds to come."""
        cycle: Any = self.cycle
        if cycle is not None and not cycle.response_complete:
            self.settle()
        elif self.waited is None and not self.transport.is_closing():
            loop = asyncio.get_running_loop()
            self.halves[self] = loop.time()
            self.waited = loop.call_later(HALF_SECONDS, self.drop)
            oldest, since = next(iter(self.halves.items()))
            if len(self.halves) > MOST_HALF and loop.time() - since > BRIEF_SECONDS:
                oldest.drop()

    def settle(self) -> None:
        self.halves.pop(self, None)
        if self.waited is not None:
            self.waited.cancel()
            self.waited = None

    def forget(self) -> None:
        self.settle()
        self.all.pop(self, None)

    def drop(self) -> None:
        self.forget()
        self.transport.abort()


class RateLimitFilter(logging.Filter):
    """Lets a repeated message through a few times per minute."""

    def __init__(self) -> None:
        super().__init__()
        self.since, self.counts = 0.0, dict[str, int]()

    def filter(self, record: logging.LogRecord) -> bool:
        now = time.monotonic()
        if now - self.since > LOG_SECONDS:
            self.since, self.counts = now, {}
        start = str(record.msg)[:40]
        self.counts[start] = self.counts.get(start, 0) + 1
        return self.counts[start] <= MOST_LOGGED


def limit_logs() -> None:
    for name in ("asyncio", "uvicorn.error"):
        logging.getLogger(name).addFilter(RateLimitFilter())


PAGE = "/"
LINK = ("navigate", "document")  # how a browser asks when one follows a link: not into a frame
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' blob: data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-cache",
}


@dataclass(frozen=True)
class AccessMiddleware:
    """Lets through what comes from this machine's own page, or carries the token where one is set.

    A page elsewhere can make a browser ask 127.0.0.1, under its own name if it rebinds that name:
    so the Host must be ours, and an Origin, where there is one, the same.
    """

    app: ASGIApp
    host: str | None = None  # given on the command line: then other machines may ask
    token: str | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]

        started = False

        async def send_guarded(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                ours = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                named = {name for name, _ in message["headers"]}
                message["headers"] += [(name, value) for name, value in ours if name not in named]
            await send(message)

        refusal = self.refusal(headers)
        answer: ASGIApp = self.app
        cookie = f"mcrise_token_{(scope.get('server') or ('', 0))[1]}"  # ports share their cookies
        if refusal:
            answer = JSONResponse({"detail": refusal}, 403)
        elif self.token and not self.knows(headers, given, cookie):
            answer = JSONResponse({"detail": "Open the address with its token, as printed."}, 401)
        elif self.is_token(given) and scope["method"] == "GET" and scope["path"] == PAGE:
            # Kept in a cookie from here on, out of the address bar.
            answer = RedirectResponse(PAGE, 303)
            answer.set_cookie(cookie, given, httponly=True, samesite="strict")
        try:
            await answer(scope, receive, send_guarded)
        except asyncio.CancelledError:  # the server has waited for it long enough
            if not started:
                ending = {"detail": "The server is ending: ask again when it is back."}
                await JSONResponse(ending, 503)(scope, receive, send_guarded)

    def refusal(self, headers: dict[str, str]) -> str:
        """Why a request is refused whoever sends it; empty if it is not."""
        host = headers.get("host", "")
        if not self.is_ours(host):
            return "The Host of the request is not this server."
        origin = headers.get("origin")
        elsewhere = headers.get("sec-fetch-site") in ("cross-site", "same-site")
        is_link = (headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")) == LINK
        if (elsewhere and not is_link) or (origin is not None and not _is_of(origin, host)):
            return "The request comes from another site's page."
        return ""

    def is_ours(self, host: str) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        if name in ("localhost", "127.0.0.1", "::1"):
            return True
        if self.host is None:
            return False
        try:  # an address is nobody's to rebind; a name must be the one given
            return bool(ipaddress.ip_address(name))
        except ValueError:
            return name == self.host.lower()

    def knows(self, headers: dict[str, str], given: str, cookie: str) -> bool:
        cookies = dict(
            part.strip().partition("=")[::2] for part in headers.get("cookie", "").split(";")
        )
        bearer = headers.get("authorization", "").removeprefix("Bearer ")
        return any(self.is_token(one) for one in (given, bearer, cookies.get(cookie, "")))

    def is_token(self, word: str) -> bool:
        expected = (self.token or "").encode()
        given = word.encode(errors="replace")  # who asks may have sent anything
        return bool(expected) and hmac.compare_digest(given, expected)


def _is_of(origin: str, host: str) -> bool:
    """Whether an origin is that of a host; it may be no address at all."""
    try:
        return urlsplit(origin).netloc == host
    except ValueError:
        return False
