"""The documentation site in a browser: it loads nothing from elsewhere, and can be read and operated by everybody."""

import pytest

from minitransformer.course import find_lessons
from tests.browser.chromium import axe_script
from tests.browser.explorer import FOLDER, drawn, open_explorer, weekly
from tests.browser.page import ABOUT_COLORS
from tests.site.conftest import site
from tests.site.pages import Page

__all__ = ["site"]  # the fixture that builds it
pytestmark = pytest.mark.exhaustive
LESSON = "lessons/06_attention_backward.html"
PAGES = (
    "lessons/README.html",
    "docs/api/decoding.html",
    "docs/exercises.html",
    "docs/benchmarks.html",
    "README.html",
    "explorer/index.html",
)


@pytest.mark.parametrize("path", ["index.html", LESSON, "docs/one-file-transformer.html", *weekly(PAGES)])
def test_page_loads_from_the_site_alone_and_can_be_read_in_every_width_and_scheme(page, site, path):
    """One test, so that the page is opened once."""
    page.open(site, path, over="http", reduced_motion=True)
    assert page.text("h1")
    assert page.broken_images() == []
    for width in (360, 768, 1440):
        page.resize(width)
        page.settle()
        assert page.overflow() == [], width
        if path == LESSON and width == 360 and axe_script():
            assert page.axe() == []
    lightness = []
    for dark in (False, True):
        page.prefer(dark, reduced_motion=True)
        page.settle()
        lightness.append(page.lightness())
        if axe_script():
            assert (page.axe(ABOUT_COLORS) if dark else page.axe()) == [], dark
    assert lightness[0] > lightness[1] + 0.3  # pictures stay on white


# where the story of each lesson begins: what comes until there takes the place of the lesson that is open
TOPS = """
const [names, done] = arguments;
const topOf = async (name) => {
  const html = await (await fetch(`${name}.html`)).text();
  const article = new DOMParser().parseFromString(html, "text/html").querySelector("article");
  const rest = new Range();
  rest.setStartAfter(article.querySelector("h1 ~ section > p"));
  rest.setEndAfter(article.lastChild);
  rest.deleteContents();
  document.querySelector("article").replaceWith(article);
  await Promise.allSettled([...article.querySelectorAll("img")].map(image => image.decode()));
  return article.querySelector("h1 ~ section > p").getBoundingClientRect().top + scrollY;
};
names.reduce(async (tops, name) => [...await tops, await topOf(name)], []).then(done);
"""


def test_the_story_of_each_lesson_begins_on_the_first_screen(page, site):
    names = [lesson.name for lesson in find_lessons()]
    page.open(site, LESSON, over="http")
    for width, height in ((360, 640), (1440, 900)):
        page.resize(width)
        page.settle()
        tops = dict(zip(names, page.wait(TOPS, names), strict=True))
        assert min(tops.values()) > 50
        assert [name for name, top in tops.items() if top > height - 100] == [], width


@pytest.mark.parametrize(("width", "beside"), [(360, False), (1440, True)])
@pytest.mark.parametrize("path", ["docs/one-file-transformer.html", "docs/one-file-gpt.html"])
def test_each_note_stands_beside_its_code_or_below_it_and_hides_nothing(page, site, path, width, beside):
    page.open(site, path, width=width)
    places = page.script("""
        const place = element => { const r = element.getBoundingClientRect(); return [r.x, r.y, r.right, r.bottom]; };
        return [...document.querySelectorAll(".beside > .note")].map(n => [place(n.previousElementSibling), place(n)]);
    """)
    assert len(places) > 40
    for code, note in places:
        if beside:
            assert note[0] >= code[2]
            assert abs(note[1] - code[1]) < 12
        else:
            assert note[1] >= code[3]
            assert note[0] < code[2]
        assert max(code[2], note[2]) <= width
    codes = "return [...document.querySelectorAll('.beside pre')].map(code => code.scrollWidth - code.clientWidth)"
    assert max(page.script(codes)) == 0


def test_first_tab_stops_can_be_seen_and_have_names(page, site):
    for path in ("index.html", LESSON):
        page.open(site, path, width=1440)
        stops = page.tab_stops(limit=40)
        assert len(stops) == 40
        assert [stop.element for stop in stops if not stop.name or not stop.visible] == []


def test_what_can_be_skipped_is_folded_and_opens_with_the_keyboard_or_by_a_link_into_it(page, site):
    page.open(site, LESSON)
    assert page.script("return document.querySelector('a.next-page').getAttribute('href')").startswith("07_masks.html")
    for kind in ("deeper", "answers", "code"):
        fold = f"document.querySelector('details.{kind}')"
        assert page.script(f"return {fold}.open") is False
        page.script(f"{fold}.querySelector('summary').focus()")
        page.press("ENTER")
        assert page.script(f"return {fold}.open") is True
    heading = "how-much-gets-through"
    page.open(site, f"{LESSON}#{heading}")
    assert page.script(f"return document.getElementById('{heading}').closest('details').open") is True
    assert page.script(f"return document.getElementById('{heading}').getBoundingClientRect().top < innerHeight")


def test_lesson_leads_to_its_numbers_in_the_explorer(page, site):
    page.open(site, LESSON)
    links = page.script(
        "const links = [...document.querySelectorAll('a[href*=\"explorer/index.html#view=\"]')];"
        "return links.map(a => a.getAttribute('href'))"
    )
    assert links
    for link in links:
        open_explorer(page, link.partition("#")[2], folder=site / "explorer")
        state = page.script("return {cell: App.state.cell, chosen: App.cell()}")
        assert state["chosen"], link
        assert state["cell"].startswith(state["chosen"]["name"]), link


def test_explorer_leads_back_to_pages_of_the_site_and_alone_to_none(page, site):
    page.open(site, "explorer/index.html")
    links = page.script("return [...document.querySelectorAll('footer a')].map(a => a.getAttribute('href'))")
    assert "../lessons/README.html" in links
    assert [link for link in links if not (site / "explorer" / link).is_file()] == []
    page.open(FOLDER)
    assert page.script("return document.querySelectorAll('footer a').length") == 0


def test_search_finds_the_lesson_on_a_subject(page, site):
    page.open(site, "search.html?q=label+smoothing", over="http")
    found = page.wait(  # until all are listed
        "const done = arguments[0];"
        "(function look() {"
        "  const links = [...document.querySelectorAll('#search-results li a')].map(a => a.getAttribute('href'));"
        "  document.querySelector('.search-summary')?.textContent ? done(links) : setTimeout(look, 50);"
        "})()"
    )
    assert any("03_softmax_cross_entropy" in link for link in found)


def test_task_of_a_lesson_runs_inside_it_in_the_colors_of_the_site(page, site):
    page.open(site, LESSON, width=1440, over="http")
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})  # frames would get them too
    page.script("for (const fold of document.querySelectorAll('details')) fold.open = true")  # a task may be in one
    page.script("document.querySelector('div.task').scrollIntoView()")
    frame = page.driver.find_element("css selector", "div.task iframe")
    for scheme in ("dark", "light"):
        page.script("document.body.dataset.theme = arguments[0]", scheme)
        page.driver.switch_to.frame(frame)
        drawn(page)
        seen = page.script(
            "return [innerWidth, innerHeight, getComputedStyle(document.documentElement).backgroundColor]"
        )
        page.driver.switch_to.default_content()
        size = page.script(
            "const f = arguments[0]; return [f.clientWidth, f.clientHeight]", frame
        )  # as high as it needs
        assert seen[:2] == size
        assert seen[2] == {"dark": "rgb(20, 23, 26)", "light": "rgb(251, 251, 249)"}[scheme]


def test_each_array_of_the_explorer_leads_to_the_section_that_derives_it(page, site):
    open_explorer(page, folder=site / "explorer")
    links = page.script(
        "return [...App.machine.arrays.values()].map(a => [a.name, Lessons.link(a)?.getAttribute('href') ?? ''])"
    )
    lessons = {link.removeprefix("../lessons/").partition("#")[0] for _, link in links}
    ids = {name: Page(site / "lessons" / name).ids for name in lessons if name}
    assert len(links) > 200
    for name, link in links:
        path, _, anchor = link.removeprefix("../lessons/").partition("#")
        assert anchor in ids.get(path, ()), (name, link)
    open_explorer(page, "view=cell&cell=cross.ds[0,1,2]", folder=site / "explorer")
    assert page.text("[data-row='cross.s'] .map.gradient .lesson") == "lesson 06"
    open_explorer(page, "view=cell&cell=cross.ds[0,1,2]")
    assert page.script("return document.querySelectorAll('.lesson').length") == 0
