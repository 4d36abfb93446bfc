"""The harness notices what it should: each page of this table has one fault."""

import re
import time

import pytest

from tests.browser.explorer import needs_axe

pytestmark = pytest.mark.exhaustive
PROBLEMS = [
    ("<script>throw new Error('on purpose')</script>", "in the console: .*Uncaught Error: on purpose"),
    ("<img alt='' src='none.png'>", "a failed request: .*/none.png: (net::ERR_FILE_NOT_FOUND|404)"),
    ("<img alt='' src='../beside.png'>", "a request out of the folder: .*/beside.png"),
    ("<script>fetch('https://example.org/').catch(() => 0)</script>", "a request out of the folder: https://example"),
    ("<script>new WebSocket('wss://example.org/')</script>", "a request out of the folder: wss://example.org"),
]


@pytest.fixture
def site(tmp_path):
    """A function that writes a page, in a folder whose name needs quoting, and returns the folder."""

    def write(body):
        folder = tmp_path / "a b ü"
        folder.mkdir(exist_ok=True)
        start = '<!doctype html><html lang="en"><meta charset="utf-8"><title>A page</title><body>'
        (folder / "index.html").write_text(start + body, "utf-8")
        return folder

    return write


@pytest.mark.parametrize("over", ["file", "http"])
def test_problem_is_noticed_and_a_good_page_has_none(site, page, over):
    page.open(site("<p>Text</p>"), over=over)
    assert page.problems() == []
    for body, problem in PROBLEMS:
        page.open(site(body), over=over)
        end = time.monotonic() + 10  # it may be logged a little later than the page is complete
        while not (problems := page.problems()):
            assert time.monotonic() < end, body
        assert re.search(problem, "\n".join(problems))
    page.open(site("<p>Text</p>"), over=over)
    page.problems()


def test_what_is_broken_or_too_wide_is_named(site, page):
    folder = site("<div style='height: 9000px'></div><img alt='' src='empty.png' loading='lazy'>")
    (folder / "empty.png").write_bytes(b"")
    page.open(folder)
    assert [image.rpartition("/")[2] for image in page.broken_images()] == ["empty.png"]
    scrolled = "<div style='overflow: auto'><p style='width: 600px'>may be wide</p></div>"
    page.open(site(scrolled), width=360)
    assert page.overflow() == []
    page.open(site(scrolled + "<table id='wide' style='width: 400px'><tr><td>Too wide</table>"), width=360)
    assert any(line.startswith('<table id="wide">Too wide ends at 408') for line in page.overflow())


@needs_axe
def test_axe_names_a_button_without_a_name_and_pale_text(site, page):
    page.open(site("<main><h1>Title</h1><button></button><p style='color: #bbb'>Pale</p></main>"))
    button, pale = page.axe()
    assert button.startswith("critical, button-name: ")
    assert pale.startswith("serious, color-contrast: ")


def test_tab_order_gives_names_and_whether_the_focus_is_visible(site, page):
    page.open(
        site("""
            <a href="#1">One</a>
            <button tabindex="-1">skipped</button>
            <button style="outline: none">Two</button>
            <svg><g tabindex="0" role="button" aria-label="Three"><rect width="9" height="9"/></g></svg>
            <a href="#6" style="position: fixed; left: -400px">Four</a>
            <button></button>""")
    )
    stops = page.tab_stops()
    assert [(stop.name, stop.visible) for stop in stops] == [
        ("One", True), ("Two", False), ("Three", True), ("Four", False), ("", True)
    ]  # fmt: skip
