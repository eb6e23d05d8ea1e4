"""Who may ask the server, and the headers that keep its pages to themselves."""

import asyncio
import hmac
import ipaddress
from dataclasses import dataclass
from urllib.parse import parse_qs, urlsplit

from starlette.responses import JSONResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

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
class Guard:
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
        if (elsewhere and not is_link) or (origin is not None and not is_of(origin, host)):
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


def is_of(origin: str, host: str) -> bool:
    """Whether an origin is that of a host; it may be no address at all."""
    try:
        return urlsplit(origin).netloc == host
    except ValueError:
        return False
