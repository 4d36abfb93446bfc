"""A page in the browser: how it is opened, what is asked of it, and what went wrong."""

import base64
import contextlib
import functools
import io
import json
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urljoin

import matplotlib.image

from tests.browser import scripts
from tests.browser.chromium import axe_script

NOT_REQUESTS = ("data:", "blob:", "about:", "chrome:")  # addresses that nothing is fetched from
ABOUT_COLORS = ["color-contrast", "link-in-text-block"]  # the rules of axe-core that depend on the color scheme
BEGINNINGS = ("Network.requestWillBeSent", "Network.webSocketCreated")
HEIGHT = 900
PREFIX = "/a-project/"  # as on a host of many projects: an address that begins with "/" does not lead into the folder


class TabStop(NamedTuple):
    """An element that the Tab key reaches."""

    element: str  # as in '<button id="next">'
    name: str  # what a screen reader says
    visible: bool  # whether the focus can be seen


class Page:
    """One tab. `folder` may be a path; each `open` forgets what was stored, cached and set before."""

    def __init__(self, driver, servers):
        self.driver = driver
        self.base = ""
        self.opened = None  # (folder, over) of what is open, None once a test has left its marks on it
        self._emulated = {}  # command: its arguments
        self._servers = servers  # an ExitStack, which ends them
        self._earlier_problems = []
        self._addresses = {}  # of the requests since `open`

    def open(
        self, folder, path="index.html", *, over="file", width=768, height=HEIGHT, dark=False, reduced_motion=False
    ):
        """Open a file of a folder, over "file" or "http"; `path` may end in "#" and a fragment."""
        if self.base:
            self._earlier_problems += self._new_problems()
            self.close()
        self._servers.close()
        if over == "file":
            self.base = Path(folder).resolve().as_uri() + "/"
        else:
            self.base = self._servers.enter_context(served(folder))
        self.resize(width, height)
        self.prefer(dark, reduced_motion)
        self._cdp("Emulation.setFocusEmulationEnabled", enabled=True)  # as if the window were in front
        self.go(path)
        self.opened = (folder, over)

    def visit(self, fragment, *, width=768, height=HEIGHT, dark=False, reduced_motion=False):
        """Show another state of the explorer that is open, as if it had just been loaded: much faster than `open`."""
        self.resize(width, height)
        self.prefer(dark, reduced_motion)
        self.script(scripts.VISIT, f"#{fragment}")
        self.settle()

    def go(self, path):
        """Follow a link to another file of the folder, with what is stored and cached."""
        self.driver.get(self.base + path)
        self.settle()

    def reload(self):
        self.driver.refresh()
        self.settle()

    def prefer(self, dark=False, reduced_motion=False):
        """Tell the page which colors are wanted, and whether motion is."""
        features = {
            "prefers-color-scheme": "dark" if dark else "light",
            "prefers-reduced-motion": "reduce" if reduced_motion else "no-preference",
        }
        self._emulate("setEmulatedMedia", features=[{"name": n, "value": v} for n, v in features.items()])

    def resize(self, width, height=HEIGHT):
        self._emulate("setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def _emulate(self, command, **arguments):
        """What the browser emulates until it is told otherwise; telling it again takes as long as the first time."""
        if self._emulated.get(command) != arguments:
            self._cdp(f"Emulation.{command}", **arguments)
            self._emulated[command] = arguments

    def close(self):
        """Leave the page, so that it cannot do anything any more, and forget what it stored."""
        self.opened = None
        self.script(scripts.FORGET)
        self.driver.get("about:blank")
        self.driver.get_log("performance")
        self.driver.get_log("browser")
        self._addresses = {}
        self._cdp("Network.clearBrowserCache")

    def settle(self):
        """Wait until the fonts are there and the page has been painted."""
        self.wait(scripts.SETTLE)

    def script(self, text, *arguments):
        """What a script returns that is given as the body of a function."""
        return self.driver.execute_script(text, *arguments)

    def wait(self, text, *arguments):
        """What a script gives to its last argument, a function."""
        return self.driver.execute_async_script(text, *arguments)

    def press(self, *keys):
        """Press one key after another: characters, or names as in "TAB", "ENTER", "ARROW_DOWN"."""
        from selenium.webdriver import ActionChains, Keys

        ActionChains(self.driver, duration=0).send_keys(*(getattr(Keys, key, key) for key in keys)).perform()

    def click(self, selector):
        self.driver.find_element("css selector", selector).click()

    def text(self, selector="body"):
        """The text that can be seen of an element."""
        return self.script("return document.querySelector(arguments[0]).innerText", selector)

    def problems(self):
        """Since last asked: errors in the console, uncaught exceptions, requests that failed or left the folder."""
        self.settle()  # what a script has just asked for is logged a little later
        found = [*self._earlier_problems, *self._new_problems()]
        self._earlier_problems = []
        return list(dict.fromkeys(found))

    def _new_problems(self):
        logged = [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] == "SEVERE"]
        new = self._read_events()
        return [f"in the console: {message}" for message in logged] + list(self._bad_requests(new))

    def _bad_requests(self, events):
        for method, event in events:
            address = self._addresses.get(event.get("requestId"))
            if address is None:
                continue
            if method in BEGINNINGS and not address.startswith(self.base):
                yield f"a request out of the folder: {address}"
            elif method == "Network.loadingFailed" and not event["canceled"]:
                yield f"a failed request: {address}: {event['errorText']}"
            elif method == "Network.responseReceived" and event["response"]["status"] >= 400:
                yield f"a failed request: {address}: {event['response']['status']}"

    def _read_events(self):
        """What the network did since last asked."""
        entries = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        new = [(entry["method"], entry["params"]) for entry in entries if entry["method"].startswith("Network.")]
        icon = urljoin(self.base, "/favicon.ico")  # the browser may ask for it, or not, when a page names no icon
        for method, event in new:
            if method in BEGINNINGS:
                address = event["url"] if "url" in event else event["request"]["url"]
                if not address.startswith((*NOT_REQUESTS, icon)):
                    self._addresses[event["requestId"]] = address
        return new

    def broken_images(self):
        """The images that show nothing, also those that are loaded only when they come into view."""
        return self.wait(scripts.BROKEN_IMAGES)

    def overflow(self):
        """The elements that make the page wider than the window, or how wide it is if no element can be blamed."""
        return self.script(scripts.DESCRIBE + scripts.OVERFLOW)

    def axe(self, *rules):
        """The serious and critical violations of all rules of axe-core, or of a list of them, one text each."""
        if not self.script("return 'axe' in window"):  # half a megabyte
            self.script(axe_script().read_text("utf-8"))
        return self.wait(scripts.AXE, *rules)

    def tab_stops(self, limit=200):
        """The elements that the Tab key reaches from here, in order, until it comes back to one or leaves the page."""
        self.script(scripts.DESCRIBE + scripts.BEFORE_TABS)
        stops = []
        while len(stops) < limit:
            for kind in ("rawKeyDown", "keyUp"):  # faster than the driver's own keys
                self._cdp("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab", windowsVirtualKeyCode=9)
            stop = self.script(scripts.AFTER_TAB)
            if stop is None:
                break
            element, name = stop
            stops.append((element, name or self.driver.switch_to.active_element.accessible_name.strip()))
        self.script("document.activeElement.blur();")
        visible = self.script(scripts.AFTER_TABS)
        return [TabStop(*stop, seen) for stop, seen in zip(stops, visible, strict=True)]

    def requests(self):
        """How many there were since `open`."""
        self._earlier_problems += self._new_problems()
        return len(self._addresses)

    def lightness(self):
        """The mean of all pixels in the window, from 0 for black to 1 for white."""
        return float(matplotlib.image.imread(self.window())[..., :3].mean())

    def window(self):
        """A picture of the window, a PNG file in memory."""
        return io.BytesIO(base64.b64decode(self._cdp("Page.captureScreenshot")["data"]))

    def _cdp(self, command, **arguments):
        """A command of the Chrome DevTools Protocol."""
        return self.driver.execute_cdp_cmd(command, arguments)


class _Handler(SimpleHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/favicon.ico":  # as some browsers do when a page names no icon
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
