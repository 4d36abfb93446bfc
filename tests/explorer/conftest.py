"""A page of a few lines, so that these tests do not depend on the real one."""

import pytest

FILES = {
    "index.html": "<!doctype html>\n",
    "style.css": "body {}\n",
    "views/model.js": "const α = 1;\n",
    "data.js": "globalThis.MODEL = null;\n",
    "notes.txt": "no part of the page\n",
}


@pytest.fixture
def page(tmp_path, monkeypatch):
    """The page's folder."""
    folder = tmp_path / "page"
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    (tmp_path / "secret.js").write_text("secret\n", "utf-8")
    monkeypatch.setattr("minitransformer.explorer.folder.PAGE", folder)
    return folder
