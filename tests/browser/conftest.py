"""One browser for each process of pytest, and a page that is held to account at the end of every test."""

import contextlib

import pytest

from tests.browser import chromium
from tests.browser.engine import open_engine
from tests.browser.page import Page


@pytest.fixture(scope="session")
def browser():
    """The running browser."""
    reason = chromium.missing()
    if reason:
        pytest.skip(reason)
    with chromium.running(chromium.find_browser(), chromium.find_driver()) as started:
        yield started


@pytest.fixture
def page(browser):
    """A page that opens a folder. The test fails if an error was logged, or a request failed or left the folder."""
    with contextlib.ExitStack() as servers:
        page = Page(browser, servers)
        yield page
        problems = page.problems()
        page.close()
    assert not problems, "\n".join(["", *problems])


@pytest.fixture(scope="module")
def engine(browser, tmp_path_factory):
    """A page with the engine of the explorer, which the tests of a file share: none of them changes it."""
    page = Page(browser, contextlib.ExitStack())
    open_engine(page, tmp_path_factory.mktemp("engine"))
    yield page
    problems = page.problems()
    page.close()
    assert not problems, "\n".join(["", *problems])
