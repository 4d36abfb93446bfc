"""The site, built once for all tests that look at it."""

import time

import pytest

from tests.site.build import build_site
from tests.site.pages import Page


@pytest.fixture(scope="session")
def site(tmp_path_factory, request):
    """The folder of the site's pages. One process of pytest-xdist builds it, the others wait."""
    for name in ("sphinx", "myst_nb", "furo", "sphinx_copybutton", "jupytext"):
        pytest.importorskip(name, reason="the site's tools are missing: pip install -e '.[docs]'")
    shared = tmp_path_factory.getbasetemp()
    folder = (shared.parent if hasattr(request.config, "workerinput") else shared) / "built_site"
    done = folder / "done"
    try:
        folder.mkdir()
    except FileExistsError:
        while not done.exists():
            time.sleep(0.2)
        assert not done.read_text("utf-8"), done.read_text("utf-8")
        return folder / "site"
    problem = "the build was interrupted"
    try:
        build_site(folder)
        problem = ""
    except AssertionError as error:
        problem = str(error)
        raise
    finally:
        done.write_text(problem, "utf-8")
    return folder / "site"


@pytest.fixture(scope="session")
def pages(site):
    """{path: page} of all pages."""
    return {path: Page(path) for path in sorted(site.rglob("*.html")) if "explorer" not in path.relative_to(site).parts}
