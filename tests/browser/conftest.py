"""One browser for each process of pytest, and a page that is held to account at the end of every test."""

import contextlib

import pytest

from tests.browser import chromium
from tests.browser.explorer import open_explorer
from tests.browser.page import Page


@pytest.fixture(scope="session")
def browser():
    """The running browser."""
    reason = chromium.missing()
    if reason:
        pytest.skip(reason)
    with chromium.running(chromium.find_browser(), chromium.find_driver()) as started:
        yield started


@pytest.fixture(scope="session")
def tab(browser):
    """The tab of that browser, in which the explorer stays loaded from test to test."""
    with contextlib.ExitStack() as servers:
        yield Page(browser, servers)


@pytest.fixture
def page(tab):
    """A page that opens a folder. The test fails if an error was logged, or a request failed or left the folder."""
    yield tab
    problems = tab.problems()
    if problems:
        tab.close()
    assert not problems, "\n".join(["", *problems])


@pytest.fixture
def engine(page):
    """The explorer, for tests that only use its engine."""
    open_explorer(page)
    return page
