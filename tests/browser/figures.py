"""What pages cost to load, and pictures of them for people to look at:

python -m tests.browser.figures build/site index.html lessons/05.html explorer/index.html
python -m tests.browser.figures minitransformer/explorer/page "index.html#view=train" --pictures
python -m tests.browser.figures minitransformer/explorer/page --readme

The first argument is a folder; the others are files in it, each with or without "#" and a fragment. Every page is
loaded five times from a local server, with an empty cache; the times are medians. --pictures saves each page at three
widths, light and dark, in runs/browser/; --readme saves the window with one page as docs/explorer.png.
"""

import argparse
import contextlib
import re
import statistics
import sys
from pathlib import Path

from PIL import Image

from tests.browser import chromium
from tests.browser.page import Page

README_PICTURE = Path(__file__).parents[2] / "docs" / "explorer.png"
WIDTHS = (360, 768, 1440)
LOADS = 5
READY = "ready"  # the mark that the explorer sets with performance.mark once it has drawn a view


def cost(page, folder, path):
    """The figures of one page; each time is the median of its loads."""
    loads = []
    for _ in range(LOADS):
        page.open(folder, path, over="http")
        loads.append(page.figures(READY))
    times = [(load.interactive, load.complete, load.mark) for load in loads]
    medians = [None if None in column else statistics.median(column) for column in zip(*times, strict=True)]
    return loads[0].transferred, loads[0].requests, *medians


def save_pictures(page, folder, path):
    """Pictures of one page; their paths."""
    name = re.sub(r"\W+", "-", path).strip("-")
    for width in WIDTHS:
        for dark in (False, True):
            page.open(folder, path, width=width, dark=dark, reduced_motion=True)
            yield page.screenshot(f"{name}-{width}-{'dark' if dark else 'light'}")


def save_for_readme(page, folder, path):
    """The picture that the README shows, with few colors so that it is small."""
    page.open(folder, path, width=1240, height=800, reduced_motion=True)
    picture = Image.open(page.window())
    picture.convert("RGB").quantize(96, dither=Image.Dither.NONE).save(README_PICTURE, optimize=True)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("pages", nargs="*", default=["index.html"])
    parser.add_argument("--pictures", action="store_true", help="save pictures, too")
    parser.add_argument("--readme", action="store_true", help="save the picture of the README instead")
    options = parser.parse_args(arguments)
    if reason := chromium.missing():
        sys.exit(f"This {reason}")
    with (
        chromium.running(chromium.find_browser(), chromium.find_driver()) as driver,
        contextlib.ExitStack() as servers,
    ):
        page = Page(driver, servers)
        if options.readme:
            return save_for_readme(page, options.folder, options.pages[0])
        print(f"{'kB':>8} {'requests':>8} {'parsed':>9} {'complete':>9} {READY:>9}  page")
        for path in options.pages:
            size, requests, *times = cost(page, options.folder, path)
            shown = " ".join(f"{'-' if time is None else f'{time:.0f} ms':>9}" for time in times)
            print(f"{size / 1000:8.1f} {requests:8} {shown}  {path}")
            print(*(f"  problem: {problem}\n" for problem in page.problems()), sep="", end="")
        for path in options.pages if options.pictures else ():
            print(*save_pictures(page, options.folder, path), sep="\n")


if __name__ == "__main__":
    main()
