"""The local server: the page's files and nothing else, for nobody else, and without a word on the terminal."""

import http.client
import itertools
import socket
import threading

import pytest

from minitransformer.explorer import example_data, serve
from minitransformer.explorer.export import data_text
from minitransformer.explorer.server import PageServer
from tests.explorer.reading import read_model


@pytest.fixture
def server(page):
    with PageServer(example_data("top")) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def ask(server, path="/", method="GET", **headers):
    """The answer to a request -> (status, headers, content)."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    try:
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read().decode()
    finally:
        connection.close()


def send(server, request):
    """All that comes back for the bytes of a request."""
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=10) as connection:
        connection.sendall(request)
        connection.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: connection.recv(65536), b"")).decode()


def test_files_of_the_page_are_served_with_their_types(server, page):
    for path, name, kind in (
        ("/", "index.html", "text/html"),
        ("/index.html?word=stop", "index.html", "text/html"),
        ("/style.css", "style.css", "text/css"),
        ("/views/model.js", "views/model.js", "text/javascript"),
        ("/views%2Fmodel.js", "views/model.js", "text/javascript"),
    ):
        status, headers, content = ask(server, path)
        assert (status, headers["Content-Type"]) == (200, f"{kind}; charset=utf-8")
        assert content == (page / name).read_text("utf-8")
    status, headers, content = ask(server, "/data.js")
    assert (status, headers["Content-Type"]) == (200, "text/javascript; charset=utf-8")
    assert content == data_text(example_data("top"))
    assert read_model(content)["title"] == "top → pot"
    status, headers, content = ask(server, "/", "HEAD")
    assert (status, content) == (200, "")
    assert headers["Content-Length"] == str(len((page / "index.html").read_bytes()))
    assert ask(server, "/missing", "HEAD")[::2] == (404, "")


NOT_SERVED = """
/missing.js /views /views/ /notes.txt /../secret.js /%2e%2e/secret.js /%2E%2E%2fsecret.js /views/../../secret.js
/views/%2e%2e/%2e%2e/secret.js /..%5csecret.js //secret.js /%00 /%ff /index.html%00.js /etc/passwd /./index.html
"""


def test_nothing_else_is_served(server, page):
    whole = f"{page}/index.html", f"http://127.0.0.1:{server.server_port}{page}/index.html"
    for path in (*NOT_SERVED.split(), *whole):
        status, headers, content = ask(server, path)
        assert (status, content) == (404, "There is no such file.\n"), path
        assert headers["Content-Type"] == "text/plain; charset=utf-8"


def test_other_methods_are_refused(server):
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
        status, headers, content = ask(server, "/", method)
        assert (status, headers["Allow"], content) == (405, "GET, HEAD", "Only GET and HEAD are allowed.\n")


def test_another_host_is_refused_and_localhost_is_the_same(server):
    port = server.server_port
    for host in (f"localhost:{port}", f"LOCALHOST:{port}"):
        assert ask(server, Host=host)[0] == 200
    others = ("evil.example", f"evil.example:{port}", "127.0.0.1", "localhost:1", f"127.0.0.1:{port}.evil.example", "")
    for method, host in itertools.product(("GET", "HEAD", "POST"), others):
        status, headers, content = ask(server, "/data.js", method, Host=host)
        assert status == 403
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert content == ("" if method == "HEAD" else f"This page is only for http://127.0.0.1:{port}/\n")


def test_a_request_with_no_host_or_two_is_refused(server):
    good = f"Host: 127.0.0.1:{server.server_port}\r\n"
    assert send(server, f"GET / HTTP/1.1\r\n{good}\r\n".encode()).split()[1] == "200"
    for hosts in ("", good + good, good + "Host: evil.example\r\n"):
        assert send(server, f"GET / HTTP/1.1\r\n{hosts}\r\n".encode()).split()[1] == "403"
    assert "This page is only for" in send(server, b"GET /\r\n\r\n")  # as before HTTP/1.0


def test_a_broken_request_gets_one_line_of_plain_text(server):
    for request, status in (
        (b"nonsense\r\n\r\n", "400"),
        (b"FLY / HTTP/1.1\r\nHost: x\r\n\r\n", "501"),
        (b"GET / HTTP/9.9\r\n\r\n", "505"),
        (b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n", "414"),
        (b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 200 + b"\r\n", "431"),
    ):
        answer = send(server, request)
        head, _, content = answer.partition("\r\n\r\n")
        assert status in head.split("\r\n")[0] or answer.count("\n") == 1
        assert "<" not in content
        assert ask(server)[0] == 200


def test_every_answer_tells_the_browser_what_is_allowed(server):
    assert server.socket.getsockname() == ("127.0.0.1", server.server_port)  # only this computer can connect
    for path, method in (("/", "GET"), ("/data.js", "HEAD"), ("/missing", "GET"), ("/", "POST")):
        headers = ask(server, path, method)[1]
        assert headers["Cache-Control"] == "no-store"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert headers["Server"].strip() == "minitransformer"
        policy = dict(rule.split(" ", 1) for rule in headers["Content-Security-Policy"].split("; "))
        assert policy["default-src"] == policy["connect-src"] == policy["frame-ancestors"] == "'none'"
        assert policy["script-src"] == "'self' 'unsafe-eval'"
        assert policy["style-src"] == "'self' 'unsafe-inline'"
        assert policy["img-src"] == "'self' data:"


def test_nothing_is_printed(server, capfd):
    ask(server)
    ask(server, "/missing")
    send(server, b"nonsense\r\n\r\n")
    with socket.create_connection(("127.0.0.1", server.server_port)) as connection:
        connection.sendall(f"GET /data.js HTTP/1.1\r\nHost: {server.server_name}:{server.server_port}\r\n\r\n".encode())
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # closes it with a reset
    assert ask(server)[0] == 200
    assert capfd.readouterr() == ("", "")


def test_a_bug_of_the_server_is_not_hidden(server, capfd, monkeypatch):
    monkeypatch.setattr(PageServer, "content", lambda self, name: 1 / 0)
    with pytest.raises(http.client.HTTPException):
        ask(server)
    assert "ZeroDivisionError" in capfd.readouterr().err


def test_serve_says_where_the_page_is_and_ends_with_ctrl_c(page):
    found = []

    def ready(address):
        found.append(address)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        serve(example_data(), 0, ready)
    (address,) = found
    port = int(address.removeprefix("http://127.0.0.1:").rstrip("/"))
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=10)


def test_a_port_in_use_is_named(server):
    with pytest.raises(OSError, match=f"^cannot listen on port {server.server_port}: "):
        serve(example_data(), server.server_port)
