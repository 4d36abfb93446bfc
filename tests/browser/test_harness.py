"""The harness notices what it should: each test writes a small page with one fault."""

import base64
import contextlib
import os
import re
import shutil
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

import matplotlib.image
import pytest

from tests.browser import chromium, figures
from tests.browser.page import ABOUT_COLORS, Page
from tests.browser.serving import served

pytestmark = pytest.mark.exhaustive
needs_axe = pytest.mark.skipif(not chromium.axe_script(), reason=chromium.NEEDS_AXE)
DOT = "data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAACAkQBADs="


@pytest.fixture
def site(tmp_path):
    """A function that writes a page, in a folder whose name needs quoting, and returns the folder."""

    def write(body, head=""):
        folder = tmp_path / "a b ü"
        folder.mkdir(exist_ok=True)
        start = '<!doctype html><html lang="en"><meta charset="utf-8"><title>A page</title>'
        (folder / "index.html").write_text(f"{start}{head}<body>{body}</body></html>", "utf-8")
        return folder

    return write


PROBLEMS = [
    ("<script>console.error('on purpose')</script>", "in the console: .*on purpose"),
    ("<script>throw new Error('on purpose')</script>", "in the console: .*Uncaught Error: on purpose"),
    ("<script>Promise.reject(new Error('on purpose'))</script>", "in the console: .*Error: on purpose"),
    ("<img alt='' src='none.png'>", "a failed request: .*/none.png: (net::ERR_FILE_NOT_FOUND|404)"),
    ("<img alt='' src='../beside.png'>", "a request out of the folder: .*/beside.png"),
    ("<img alt='' src='/beside.png'>", "a request out of the folder: .*/beside.png"),
    ("<link rel='stylesheet' href='https://example.org/a.css'>", "a request out of the folder: https://example.org/"),
    ("<script>fetch('https://example.org/').catch(() => 0)</script>", "a request out of the folder: https://example"),
    ("<script>new WebSocket('wss://example.org/')</script>", "a request out of the folder: wss://example.org"),
]


@pytest.mark.parametrize("over", ["file", "http"])
@pytest.mark.parametrize(("body", "problem"), PROBLEMS)
def test_problem_is_noticed(site, page, over, body, problem):
    page.open(site(body), over=over)
    assert re.search(problem, "\n".join(problems_of(page)))
    page.close()
    page.problems()


def problems_of(page):
    """The problems of a page that has some: they may be logged a little later than the page is complete."""
    end = time.monotonic() + 10
    while not (problems := page.problems()):
        assert time.monotonic() < end, "nothing was noticed"
    return problems


@pytest.mark.parametrize("over", ["file", "http"])
def test_good_page_has_no_problem(site, page, over):
    folder = site(f"<p>Text</p><img alt='a dot' src='{DOT}'><img alt='' src='ü/1.gif' loading='lazy'>")
    (folder / "ü").mkdir()
    (folder / "ü" / "1.gif").write_bytes(base64.b64decode(DOT.partition(",")[2]))
    page.open(folder, over=over)
    assert page.broken_images() == []
    assert page.problems() == []


def test_problem_of_an_earlier_page_is_not_forgotten(site, page):
    page.open(site("<script>throw 1</script>"))
    page.open(site("<p>Text</p>"))
    assert "Uncaught" in " ".join(page.problems())
    assert page.problems() == []


@pytest.mark.parametrize("over", ["file", "http"])
def test_each_page_starts_with_nothing_stored(site, page, over):
    folder = site("<script>document.title = localStorage.visits || 'none'; localStorage.visits = 'some'</script>")
    page.open(folder, over=over)
    assert page.driver.title == "none"
    for _ in range(10):  # Chromium may reload a page in another process before it has written what the first one stored
        page.reload()
        if page.driver.title == "some":
            break
    assert page.driver.title == "some"
    page.open(folder, over=over)
    assert page.driver.title == "none"


def test_image_that_shows_nothing_is_named(site, page):
    folder = site("<div style='height: 9000px'></div><img alt='' src='empty.png' loading='lazy'>")
    (folder / "empty.png").write_bytes(b"")
    page.open(folder)
    (broken,) = page.broken_images()
    assert broken.endswith("/empty.png")


def test_what_is_too_wide_is_named(site, page):
    scrolled = "<div style='overflow: auto'><p style='width: 600px'>may be wide</p></div>"
    page.open(site(scrolled), width=360)
    assert page.overflow() == []
    page.open(site(scrolled + "<table id='wide' style='width: 400px'><tr><td>Too wide</table>"), width=360)
    assert any(line.startswith('<table id="wide">Too wide ends at 408') for line in page.overflow())
    page.resize(500)
    assert page.overflow() == []


@needs_axe
def test_axe_names_a_button_without_a_name_and_pale_text(site, page):
    page.open(site("<main><h1>Title</h1><button></button><p style='color: #bbb'>Pale</p></main>"))
    button, pale = page.axe()
    assert button.startswith("critical, button-name: ")
    assert "<button></button>" in button
    assert pale.startswith("serious, color-contrast: ")
    assert page.axe(ABOUT_COLORS) == [pale]
    page.open(site("<main><h1>Title</h1><button>Next</button><p>Dark</p></main>"))
    assert page.axe() == []


def test_tab_order_gives_names_and_whether_the_focus_is_visible(site, page):
    body = """
        <a href="#1">One</a>
        <button tabindex="-1">skipped</button>
        <button style="outline: none">Two</button>
        <label>Three <input style="outline: 2px solid"></label>
        <input type="checkbox" id="four" style="opacity: 0"><label for="four">Four</label>
        <svg><g tabindex="0" role="button" aria-label="Five"><rect width="9" height="9"/></g></svg>
        <a href="#6" style="position: fixed; left: -400px">Six</a>
        <button></button>"""
    page.open(site(body, head="<style>input:focus-visible + label { text-decoration: underline }</style>"))
    stops = page.tab_stops()
    assert [stop.name for stop in stops] == ["One", "Two", "Three", "Four", "Five", "Six", ""]
    assert [stop.visible for stop in stops] == [True, False, False, True, True, False, True]
    assert stops[0] == ('<a href="#1">One', "One", "link", True)
    assert len(page.tab_stops(limit=2)) == 2


def test_keys_and_clicks_reach_the_page(site, page):
    page.open(site("<input><details><summary>More</summary>Hidden text</details>"))
    assert "Hidden text" not in page.text()
    page.press("TAB", "s", "t", "TAB", "ENTER")
    assert page.script("return document.querySelector('input').value") == "st"
    assert "Hidden text" in page.text()
    page.click("summary")
    assert "Hidden text" not in page.text("details")


def test_page_sees_the_scheme_the_motion_and_the_width(site, page):
    style = "<style>@media (prefers-color-scheme: dark) { html { background: black } }</style>"
    asked = "return [matchMedia('(prefers-reduced-motion)').matches, innerWidth]"
    page.open(site("<p>Text</p>", head=style), width=1440)
    assert page.lightness() > 0.9
    assert page.script(asked) == [False, 1440]
    page.open(site("<p>Text</p>", head=style), width=360, dark=True, reduced_motion=True)
    assert page.lightness() < 0.1
    assert page.script(asked) == [True, 360]


def test_figures_count_bytes_and_requests(site, page):
    folder = site("<script src='a.js'></script>")
    (folder / "a.js").write_text("//" + "x" * 5000 + "\nperformance.mark('ready');", "utf-8")
    page.open(folder)
    figures = page.figures("ready")
    size = sum(file.stat().st_size for file in folder.iterdir())
    assert (figures.transferred, figures.requests) == (size, 2)
    assert 0 < figures.mark <= figures.interactive <= figures.complete
    page.open(folder, over="http")
    figures = page.figures("none")
    assert figures.transferred > size  # with the headers
    assert (figures.requests, figures.mark) == (2, None)


def test_screenshot_shows_the_whole_page(site, page, tmp_path, monkeypatch):
    monkeypatch.setattr("tests.browser.page.SCREENSHOTS", tmp_path / "pictures")
    page.open(site("<div style='height: 2000px'></div>"), width=360)
    path = page.screenshot("tall")
    assert path == tmp_path / "pictures" / "tall.png"
    height, width = matplotlib.image.imread(path).shape[:2]
    assert (height, width) == (2016, 360 - 15)  # with the margins, without the scroll bar


def test_server_gives_out_its_folder_alone(site, tmp_path):
    (tmp_path / "beside.txt").write_text("not this", "utf-8")
    with served(site("<p>Text</p>")) as address:
        with urllib.request.urlopen(address, timeout=10) as answer:
            assert b"<p>Text</p>" in answer.read()
        for path in ("/index.html", "/a-project/../beside.txt", "/a-project/%2e%2e/beside.txt"):
            with pytest.raises(urllib.error.HTTPError, match="404"):
                urllib.request.urlopen(urllib.parse.urljoin(address, "/")[:-1] + path, timeout=10)


def test_without_a_browser_or_selenium_the_skip_says_what_to_install(monkeypatch):
    assert chromium.missing() in (None, chromium.NEEDS)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    assert chromium.missing() == chromium.NEEDS
    monkeypatch.setitem(sys.modules, "selenium", None)
    assert chromium.missing() == chromium.NEEDS


@pytest.mark.skipif(os.name != "posix", reason="the programs are shell scripts")
def test_browser_is_the_one_that_the_driver_is_made_for(tmp_path, monkeypatch):
    for name, said in (
        ("chromedriver", "ChromeDriver 130.0.1.2 (abc)"),
        ("google-chrome", "Google Chrome 131.0.0.1"),
        ("chromium-browser", "Chromium 130.0.9.9 built on Debian"),
    ):
        (tmp_path / name).write_text(f"#!/bin/sh\necho '{said}'\n", "utf-8")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert chromium.find_browser() == str(tmp_path / "chromium-browser")
    (tmp_path / "chromium-browser").unlink()
    assert chromium.find_browser() is None


@pytest.mark.skipif(chromium.missing() is not None, reason=chromium.NEEDS)
def test_browser_that_does_not_start_fails_with_the_log_of_the_driver(tmp_path):
    counter = tmp_path / "starts"
    (tmp_path / "chromium").write_text(f"#!/bin/sh\necho again >> {counter}\nexit 1\n", "utf-8")
    (tmp_path / "chromium").chmod(0o755)
    never = chromium.running(str(tmp_path / "chromium"), chromium.find_driver())
    with pytest.raises(RuntimeError, match=r"did not start, 2 times: .*\n(.*\n)*.*ChromeDriver"), never:
        pass
    assert counter.read_text("utf-8") == "again\nagain\n"


def test_figures_are_printed_and_pictures_saved(site, browser, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("tests.browser.page.SCREENSHOTS", tmp_path / "pictures")
    monkeypatch.setattr(chromium, "running", lambda *_: contextlib.nullcontext(browser))
    folder = site("<script>performance.mark('ready')</script><img alt='' src='none.png'>")
    figures.main([str(folder), "index.html#view=train", "--pictures"])
    Page(browser, contextlib.ExitStack()).close()  # what is left in the logs is not the next test's
    heading, line, *rest = capsys.readouterr().out.splitlines()
    assert heading.split() == ["kB", "requests", "parsed", "complete", "ready", "page"]
    assert re.fullmatch(r" +\d+\.\d +2( +\d+ ms){3}  index.html#view=train", line)
    assert any("none.png" in said for said in rest if said.startswith("  problem: "))
    assert len(list((tmp_path / "pictures").glob("index-html-view-train-*.png"))) == 6
