"""The site. In a checkout with pip install -e '.[docs]':

    sphinx-build -W --keep-going -b html -d build/doctrees -c docs . build/site

The source folder is the checkout itself, so that links between its files are the same on GitHub and on the site.
"""

import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent
sys.path[:0] = [str(DOCS), str(DOCS.parent), str(DOCS.parent / "lessons")]  # course_site, tests, what lessons share

from support.make_pages import PARTS  # noqa: E402

from course_site.explorer import star_row  # noqa: E402
from course_site.links import source_link as linkcode_resolve  # noqa: E402, F401

from minitransformer.course import find_lessons  # noqa: E402

project = "minitransformer"
html_title = "minitransformer"
copyright = ""
language = "en"
smartquotes = False  # "..." and "a" stay as they are in shapes and code
root_doc = "docs/contents"

include_patterns = [
    "*.md",
    "docs/*.md",
    "docs/api/*.rst",
    "lessons/*.md",
    "lessons/[0-9][0-9]_*.py",
    "lessons/one_sitting.py",
]
exclude_patterns = [".*", "build", "runs", "my_exercises", "minitransformer", "tests", "plots", "**/node_modules"]

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.linkcode", "sphinx_copybutton", "course_site.extension"]
nb_custom_formats = {".py": "course_site.notebook.read"}
nb_execution_mode = "off"
myst_heading_anchors = 4
suppress_warnings = ["myst.header", "config.cache"]

add_module_names = False
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
toc_object_entries = False
autodoc_preserve_defaults = True
autodoc_mock_imports = ["mpi4py"]  # the site is built without it

html_theme = "furo"
html_static_path = ["theme/static"]
templates_path = ["theme"]
html_css_files = ["course.css"]
html_js_files = ["course.js", "asking.js", "valley.js"]
html_additional_pages = {"index": "front.html"}
html_context = {"lessons": find_lessons(DOCS.parent / "lessons"), "hour": ("00", "05", "06", "12"), "row": star_row()}
html_context["parts"] = PARTS
one_file = (DOCS.parent / "lessons" / "one_file").glob("*.py")
html_context["lines"] = {path.stem: len(path.read_text("utf-8").splitlines()) for path in one_file}
html_favicon = "theme/favicon.svg"
html_copy_source = False
html_show_copyright = False
pygments_style = "default"
pygments_dark_style = "github-dark"
html_theme_options = {
    "light_css_variables": {
        "color-brand-primary": "#0072b2",
        "color-brand-content": "#00639c",
        "forward": "#0072b2",
        "gradient": "#b34a00",  # orange, dark enough to be read as text
        "result": "#009e73",
        "quiet": "#5b5e65",
    },
    "dark_css_variables": {
        "color-brand-primary": "#7cc4f0",
        "color-brand-content": "#7cc4f0",
        "forward": "#6cb8ea",
        "gradient": "#f19a5b",
        "result": "#3fbf97",
        "quiet": "#a9adb3",
    },
}
copybutton_selector = ".cell_input pre, .highlight-python pre, .highlight-sh pre"
