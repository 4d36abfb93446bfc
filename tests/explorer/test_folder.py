"""Copies of the page for other web servers."""

import re

import pytest

from minitransformer.explorer import example_data, page_folder, write_page
from minitransformer.explorer.export import data_text
from minitransformer.explorer.folder import page_files


def files_in(folder):
    """{name: text} of all files."""
    return {str(p.relative_to(folder)): p.read_text("utf-8") for p in folder.rglob("*") if p.is_file()}


@pytest.mark.parametrize("exists", [False, True])
def test_copy_has_the_page_and_the_data_of_the_model(exists, page, tmp_path):
    folder = tmp_path / "site" / "explorer"
    if exists:
        folder.mkdir(parents=True)
    write_page(example_data("top"), folder)
    expected = files_in(page) | {"data.js": data_text(example_data("top"))}
    del expected["notes.txt"]
    assert files_in(folder) == expected


def test_a_folder_with_anything_in_it_is_left_alone(page, tmp_path):
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "index.html").write_text("mine", "utf-8")
    with pytest.raises(ValueError, match="is not empty: choose a new folder"):
        write_page(example_data(), folder)
    assert files_in(folder) == {"index.html": "mine"}


def test_the_page_is_a_folder_of_the_package():
    assert page_folder().is_dir()
    assert page_folder().parent.name == "explorer"
    assert (page_folder() / "data.js").is_file()
    assert "data.js" not in page_files()


def test_index_lists_every_script_once_and_each_makes_one_global_of_its_own():
    listed = re.findall(r'<script src="([^"]+)"></script>', (page_folder() / "index.html").read_text("utf-8"))
    loaded_when_needed = {"letters.js", "views/attention.js"}  # the second by attention.html
    files = {path.relative_to(page_folder()).as_posix() for path in page_folder().rglob("*.js")}
    assert sorted(listed) == sorted(files - loaded_when_needed)
    made = [
        re.findall(r"^(?:const|let|var|function|class|globalThis\.) ?(\w+)", text, re.MULTILINE)
        for text in ((page_folder() / name).read_text("utf-8") for name in listed)
    ]
    assert all(len(names) == 1 for names in made), dict(zip(listed, made, strict=True))
    assert len({names[0] for names in made}) == len(listed)
