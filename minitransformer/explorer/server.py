"""The page on a local address, with the data of any model. Only programs on this computer can read it.

A page of the Internet, open in the same browser, may try to read it, too. Three headers prevent that. The request must
name this address as its host, which a page whose own name was made to point here does not (DNS rebinding). The answer
says that other pages may not include it as a script or an image, and that this page may load nothing from elsewhere.
"""

import socketserver
import sys
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote

from minitransformer.explorer.export import Data, data_text
from minitransformer.explorer.folder import DATA, TYPES, page_files
from minitransformer.system.files import named_in_errors

HOST = "127.0.0.1"
METHODS = ("GET", "HEAD")
POLICY = (
    "default-src 'none'",
    "script-src 'self' 'unsafe-eval'",  # the page compiles its formulas
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data:",
    "connect-src 'none'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
)
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "; ".join(POLICY),
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


def serve(data: Data, port: int = 0, ready: Callable[[str], object] = lambda address: None) -> None:
    """Serve the page with `data` until Ctrl-C. Call ready(address) as soon as the page can be opened.

    Port 0 is any free one. Raises OSError if the port is in use.
    """
    with PageServer(data, port) as server:
        ready(server.address)
        server.serve_forever()


class PageServer(ThreadingHTTPServer):
    """Listens on 127.0.0.1, and answers from the page's folder and `data`."""

    allow_reuse_address = sys.platform != "win32"  # where it would let two servers listen on one port
    daemon_threads = True  # a browser that keeps its connection open does not keep the command from ending

    def __init__(self, data: Data, port: int = 0) -> None:
        self.data, self.kind = data_text(data).encode(), data.get("kind")
        with named_in_errors(f"cannot listen on port {port}"):
            super().__init__((HOST, port), PageHandler)

    def server_bind(self) -> None:
        """Bind without asking the network for this computer's name, as HTTPServer does."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = HOST, self.server_address[1]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing if the browser has closed a connection or keeps silent."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)

    @property
    def address(self) -> str:
        """Where the page is."""
        return f"http://{HOST}:{self.server_port}/"

    @property
    def hosts(self) -> tuple[str, ...]:
        """What the header Host may be."""
        return f"{HOST}:{self.server_port}", f"localhost:{self.server_port}"

    def content(self, name: str) -> bytes | None:
        """The file called `name`, or None. Only names of the page's files are known, so no path leads elsewhere."""
        if name == DATA:
            return self.data
        path = page_files(self.kind).get(name)
        return path.read_bytes() if path else None


class PageHandler(BaseHTTPRequestHandler):
    """Answers one request."""

    server: PageServer
    timeout = 10  # seconds without a word from the browser
    server_version, sys_version = "minitransformer", ""

    def do_GET(self) -> None:
        """Send a file."""
        if self.is_for_another_host():
            return
        name = unquote(self.path.partition("?")[0]).removeprefix("/") or "index.html"
        content = self.server.content(name)
        if content is None:
            self.send_error(404, "There is no such file.")
        else:
            self.reply(200, content, TYPES[name[name.rindex(".") :]])

    do_HEAD = do_GET

    def refuse(self) -> None:
        """Refuse a method that could change something."""
        if not self.is_for_another_host():
            self.reply(405, b"Only GET and HEAD are allowed.\n", Allow=", ".join(METHODS))

    do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = do_TRACE = do_CONNECT = refuse

    def is_for_another_host(self) -> bool:
        """Whether the request does not name this server, and was refused."""
        before_http_1 = self.request_version == "HTTP/0.9"  # in which Python 3.14 reads no headers
        names = [] if before_http_1 else [name.lower() for name in self.headers.get_all("Host", [])]
        foreign = len(names) != 1 or names[0] not in self.server.hosts
        if foreign:
            self.send_error(403, f"This page is only for {self.server.address}")
        return foreign

    def reply(self, status: int, content: bytes, kind: str = "text/plain; charset=utf-8", **headers: str) -> None:
        """Send an answer, without its content if it was not asked for."""
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(content)), **HEADERS, **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Send one sentence as plain text, also for what Python's own parser refuses."""
        self.close_connection = True
        self.reply(code, f"{message or self.responses[code][0]}\n".encode())

    def log_message(self, format: str, *args: object) -> None:
        """Keep the terminal quiet."""
