"""Who is answered, by the guard alone."""

import asyncio
import socket
import threading

import pytest
import uvicorn

from mcrise.server.security import HEADERS, AccessMiddleware, Connection

TOKEN = "a-token"


async def app(scope, receive, send):
    """Whatever is behind the guard; it sets one header itself."""
    headers = [(b"cache-control", b"own"), (b"x-behind", b"yes")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


def answer(guard, path="/", method="GET", query="", port=8700, kind="http", **headers):
    """Status and headers of what a guard answers to a request."""
    given = {"host": "127.0.0.1:8700", **headers}
    scope = {
        "type": kind,
        "method": method,
        "path": path,
        "query_string": query.encode("latin-1"),
        "headers": [
            (name.replace("_", "-").encode(), value.encode("latin-1"))
            for name, value in given.items()
        ],
        "server": ("127.0.0.1", port),
    }
    sent = []

    async def send(message):
        sent.append(message)

    async def receive():
        return {"type": "http.request", "body": b""}

    asyncio.run(guard(scope, receive, send))
    (start,) = [message for message in sent if message["type"] == "http.response.start"]
    return start["status"], {name.decode(): value.decode() for name, value in start["headers"]}


def status(*given, **more):
    return answer(*given, **more)[0]


FOLLOWED = {"sec_fetch_mode": "navigate", "sec_fetch_dest": "document"}  # a link
LOCAL, OPEN = AccessMiddleware(app), AccessMiddleware(app, "signs.example", TOKEN)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:8700", "localhost:1", "[::1]:8700"])
def test_this_machine_is_answered_by_any_of_its_names(host):
    assert status(LOCAL, host=host) == 200


@pytest.mark.parametrize(
    "host",
    ["", "evil.example", "127.0.0.1.evil.example", "192.168.0.7", "signs.example", "[", "[::1",
     "127.0.0.2"],
)  # fmt: skip
def test_no_other_name_is_answered_where_no_host_was_given(host):
    assert status(LOCAL, host=host) == 403


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("signs.example:8700", 200),
        ("SIGNS.example", 200),
        ("192.168.0.7:8700", 200),  # an address is nobody's to rebind
        ("[fe80::1]:8700", 200),
        ("localhost", 200),
        ("other.example", 403),
        ("signs.example.evil.example", 403),
    ],
)
def test_with_a_host_its_name_and_any_address_are_answered(host, expected):
    assert status(OPEN, host=host, authorization=f"Bearer {TOKEN}") == expected


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"origin": "http://127.0.0.1:8700"}, 200),
        ({"origin": "http://127.0.0.1:8701"}, 403),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": ""}, 403),
        ({"origin": "http://["}, 403),
        ({"sec_fetch_site": "cross-site", "sec_fetch_mode": "no-cors"}, 403),
        ({"sec_fetch_site": "cross-site"}, 403),
        ({"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate"}, 403),
        ({"sec_fetch_site": "cross-site", **FOLLOWED, "sec_fetch_dest": "iframe"}, 403),
        ({"sec_fetch_site": "same-site", "sec_fetch_mode": "no-cors"}, 403),  # of another port
        ({"sec_fetch_site": "cross-site", **FOLLOWED}, 200),
        ({"sec_fetch_site": "same-origin", "sec_fetch_mode": "cors"}, 200),
    ],
)
def test_what_another_sites_page_asks_is_refused(headers, expected):
    assert status(LOCAL, **headers) == expected


def test_what_is_no_request_passes():
    assert status(LOCAL, kind="lifespan", host="evil.example") == 200


@pytest.mark.parametrize("guard", [LOCAL, OPEN])
def test_every_answer_has_the_headers_but_those_it_sets_itself(guard):
    for host, token in (("127.0.0.1", TOKEN), ("evil.example", TOKEN), ("127.0.0.1", "wrong")):
        _, headers = answer(guard, host=host, authorization=f"Bearer {token}")
        own = {"cache-control": "own"} if "x-behind" in headers else {}
        assert {name: headers[name] for name in HEADERS} == {**HEADERS, **own}


def test_the_token_is_taken_from_the_address_the_header_and_the_cookie_of_this_port():
    assert status(OPEN) == 401
    assert status(OPEN, authorization=f"Bearer {TOKEN}") == 200
    assert status(OPEN, authorization=f"Bearer {TOKEN}x") == 401
    assert status(OPEN, cookie=f"a=b; mcrise_token_8700={TOKEN}; c=d") == 200
    assert status(OPEN, cookie=f"mcrise_token_8701={TOKEN}") == 401
    assert status(OPEN, cookie=f"mcrise_token_8700={TOKEN}", port=8701) == 401
    assert status(OPEN, "/api/jobs", query=f"a=1&token={TOKEN}") == 200
    assert status(OPEN, "/api/jobs", query="token=") == 401


def test_only_the_page_moves_the_token_from_its_address_into_a_cookie():
    found, headers = answer(OPEN, query=f"token={TOKEN}")
    assert (found, headers["location"]) == (303, "/")
    cookie = headers["set-cookie"]
    assert cookie.startswith(f"mcrise_token_8700={TOKEN};")
    assert "httponly" in cookie.lower()
    assert "samesite=strict" in cookie.lower()
    for method, path in (("POST", "/"), ("GET", "/api/jobs"), ("GET", "//evil.example/..")):
        found, headers = answer(OPEN, path, method, query=f"token={TOKEN}")
        assert found == 200
        assert "location" not in headers
        assert "set-cookie" not in headers


def test_a_wrong_token_beside_a_good_cookie_changes_nothing():
    found, headers = answer(OPEN, query="token=wrong", cookie=f"mcrise_token_8700={TOKEN}")
    assert found == 200
    assert "set-cookie" not in headers


@pytest.mark.parametrize("odd", ["%ff%fe", "%F0%9F%92%A9", "\xe9", "%ED%A0%80", "a" * 10_000])
def test_what_is_no_token_is_refused_whatever_it_is_made_of(odd):
    assert status(OPEN, query=f"token={odd}") == 401
    assert status(OPEN, cookie=f"mcrise_token_8700={odd}") == 401
    assert status(OPEN, authorization=odd) == 401


def test_where_no_token_is_set_none_is_asked_for_and_none_is_kept():
    found, headers = answer(LOCAL, query="token=")
    assert (found, headers.get("set-cookie")) == (200, None)
    found, headers = answer(LOCAL, query="token=x")
    assert (found, headers.get("set-cookie")) == (200, None)


def test_what_was_not_answered_when_the_server_ends_is_told_to_ask_again():
    async def slow(scope, receive, send):
        raise asyncio.CancelledError

    assert status(AccessMiddleware(slow)) == 503


def test_what_was_half_sent_when_the_server_ends_is_not_begun_again():
    async def half_sent(scope, receive, send):
        await app(scope, receive, send)
        raise asyncio.CancelledError

    assert answer(AccessMiddleware(half_sent))[0] == 200


def test_many_complete_requests_at_once_are_all_answered():
    n_clients = 200
    config = uvicorn.Config(app, "127.0.0.1", 0, http=Connection, log_level="warning")
    server, door = uvicorn.Server(config), config.bind_socket()
    door.listen(n_clients)
    clients = [socket.create_connection(door.getsockname(), 10) for _ in range(n_clients)]
    for client in clients:  # all of it is there before the server looks
        client.sendall(b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n")
    thread = threading.Thread(target=server.run, args=([door],))
    thread.start()
    try:
        answers = []
        for client in clients:
            with client:
                try:
                    answers.append(client.recv(12))
                except ConnectionResetError:
                    answers.append(b"reset")
    finally:
        server.should_exit = True
        thread.join()
    assert answers == [b"HTTP/1.1 200"] * n_clients
