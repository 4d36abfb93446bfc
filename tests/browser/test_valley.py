"""The two valleys of lesson 24 in a browser: their numbers are those of descent, and everybody can use the slider."""

import pytest

from tests.browser.chromium import axe_script
from tests.site.conftest import site

__all__ = ["site"]  # the fixture that builds it
pytestmark = pytest.mark.exhaustive
SET = """
const [rate] = arguments;
const slider = document.querySelector(".valley input");
slider.value = rate;
slider.dispatchEvent(new Event("input"));
return [...document.querySelectorAll(".valley figure")].map(figure => [
  figure.querySelector("figcaption").textContent,
  [...figure.querySelectorAll("circle")].map(circle => Number(circle.getAttribute("cx"))),
]);
"""


def places_after(rate, curvature):
    """Where descent on ½ curvature θ² is after each of ten steps from 1."""
    places = [1.0]
    for _ in range(10):
        places.append(places[-1] - rate * curvature * places[-1])
    return places


@pytest.mark.parametrize("rate", [0.5, 1.5, 2.1])
def test_both_valleys_show_ten_steps_of_descent_with_the_rate_of_the_slider(page, site, rate):
    page.open(site, "lessons/24_sharpness.html", over="http")
    for (said, drawn), curvature in zip(page.script(SET, rate), (1.0, 0.1), strict=True):
        places = places_after(rate, curvature)
        inside = [place for place in places if abs(place) <= 1.3]
        assert [2.6 * x / 260 - 1.3 for x in drawn] == pytest.approx(inside, abs=1e-9)
        if len(inside) == len(places):
            assert float(said.split(", ")[1].split()[0]) == pytest.approx(abs(places[-1]), rel=0.06)
        else:
            assert said.endswith(f"out of the picture in step {len(inside)}")


def test_slider_has_a_name_works_with_the_keyboard_and_fits_on_a_telephone(page, site):
    page.open(site, "lessons/24_sharpness.html", over="http", width=360)
    assert page.overflow() == []
    page.script("document.querySelector('.valley input').focus()")
    page.press("ARROW_RIGHT")
    assert page.script("return document.querySelector('.valley output').textContent") == "1.55"
    assert page.script("return getComputedStyle(document.querySelector('.drawn-instead')).display") == "none"
    if axe_script():
        assert page.axe() == []
