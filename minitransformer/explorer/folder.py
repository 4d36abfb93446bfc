"""The files of the page, and copies of them with the data of another model."""

from pathlib import Path

from minitransformer.explorer.export import Data, data_text
from minitransformer.system.files import atomic_write, check_folder

PAGE = Path(__file__).with_name("page")
DATA = "data.js"
TYPES = {  # of the files that belong to the page
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
}


def page_folder() -> Path:
    """The folder of the page. Its index.html can be opened in a browser as it is."""
    return PAGE


def page_files(kind: str | None = None) -> dict[str, Path]:
    """{name: path} of all files of the page, such as "views/model.js", except for data.js.

    For data of the kind "attention", index.html is attention.html.
    """
    paths = {path.relative_to(PAGE).as_posix(): path for path in sorted(PAGE.rglob("*")) if path.is_file()}
    if kind is not None:
        paths["index.html"] = paths[f"{kind}.html"]
    return {name: path for name, path in paths.items() if path.suffix in TYPES and name != DATA}


def check_new(folder: Path) -> None:
    """ValueError if `folder` has anything in it, and OSError if it cannot be written."""
    check_folder(folder)
    if folder.is_dir() and any(folder.iterdir()):
        raise ValueError(f"{folder} is not empty: choose a new folder")


def write_page(data: Data, folder: Path) -> None:
    """Copy the page with `data` to a folder that is new or empty. Raises what `check_new` raises."""
    check_new(folder)
    contents = {name: path.read_bytes() for name, path in page_files(data.get("kind")).items()}
    for name, content in {**contents, DATA: data_text(data).encode()}.items():
        with atomic_write(folder / name) as partial:
            partial.write_bytes(content)
