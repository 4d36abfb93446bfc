"""Chromium and its driver: where they are, and a start that is tried twice because a busy machine can be too slow."""

import contextlib
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

BROWSERS = ("google-chrome", "google-chrome-stable", "chromium", "chromium-browser")
NEEDS = "needs Chromium and its driver: apt-get install chromium chromium-driver, pip install -e '.[browser]'"
NEEDS_AXE = "needs the file of axe: pip install --no-deps axe-playwright-python==0.1.8"
FLAGS = (
    "--headless=new",
    "--disable-gpu",
    "--disable-quic",
    "--disable-features=SpareRendererForSitePerProcess",  # a page here is seldom followed by another one
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",  # it is small in a container
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",  # nothing reaches the network, whatever a page asks for
)
STARTS = 2


def find_driver():
    """The path of chromedriver, or None."""
    return shutil.which("chromedriver")


def find_browser():
    """The path of the browser that the driver is made for, or None; a machine may have Chrome and Chromium."""
    driver = find_driver()
    found = [path for path in map(shutil.which, BROWSERS) if path]
    return next((path for path in found if driver and _version(path) == _version(driver)), None)


def _version(program):
    """The major version of a browser or driver, None for a program that does not say it."""
    said = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=60).stdout
    number = re.search(r"(\d+)\.\d+\.\d+", said)
    return number and number[1]


def missing():
    """Why no browser can be started here, or None."""
    return None if importlib.util.find_spec("selenium") and find_browser() else NEEDS


def axe_script():
    """The file of axe-core, or None. The package around it is only a way to install the file, and is never imported."""
    package = importlib.util.find_spec("axe_playwright_python")
    file = package and Path(package.submodule_search_locations[0]) / "axe.min.js"
    return file if file and file.exists() else None


@contextlib.contextmanager
def running(browser, driver):
    """A browser with an empty profile; it ends with the block. Raises RuntimeError if it did not start twice."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        for attempt in range(1, STARTS + 1):
            try:
                started = _start(browser, driver, Path(folder) / str(attempt))
                break
            except Exception as error:
                if attempt == STARTS:
                    log = (Path(folder) / str(attempt) / "driver.log").read_text("utf-8", "replace")
                    last_lines = "\n".join(log.splitlines()[-30:])
                    raise RuntimeError(f"{browser} did not start, {STARTS} times: {error}\n{last_lines}") from error
        try:
            yield started
        finally:
            started.quit()


def _start(browser, driver, folder):
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    folder.mkdir()
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    as_root = ["--no-sandbox"] if os.name == "posix" and os.geteuid() == 0 else []  # the sandbox refuses to run as root
    for flag in (*FLAGS, *as_root, f"--user-data-dir={folder / 'profile'}"):
        options.add_argument(flag)
    started = webdriver.Chrome(service=Service(driver, log_output=str(folder / "driver.log")), options=options)
    started.set_page_load_timeout(60)
    started.set_script_timeout(60)
    return started
