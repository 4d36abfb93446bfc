"""A folder on a web server of this machine, for as long as a block runs."""

import contextlib
import functools
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

PREFIX = "/a-project/"  # as on a host of many projects: an address that begins with "/" does not lead into the folder


class _Handler(SimpleHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/favicon.ico":  # see page.py
            self.send_response(204)
            self.end_headers()
        else:
            super().do_GET()

    def translate_path(self, path):
        if not path.startswith(PREFIX):
            return "/nothing/is/here"
        return super().translate_path(path[len(PREFIX) - 1 :])

    def log_message(self, *_):
        """Say nothing: the browser's own log tells what was asked for."""


@contextlib.contextmanager
def served(folder):
    """The address of `folder`, ending in "/"."""
    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Handler, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}{PREFIX}"
        finally:
            server.shutdown()
            thread.join()
