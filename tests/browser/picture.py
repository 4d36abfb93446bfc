"""Take the picture of the explorer that README shows, docs/explorer.png, with few colors so that it is small:

python -m tests.browser.picture
"""

import contextlib
import sys
from pathlib import Path

from PIL import Image

from minitransformer.explorer import page_folder
from tests.browser import chromium
from tests.browser.page import Page

FILE = Path(__file__).parents[2] / "docs" / "explorer.png"


def main():
    if reason := chromium.missing():
        sys.exit(f"This {reason}")
    started = chromium.running(chromium.find_browser(), chromium.find_driver())
    with started as driver, contextlib.ExitStack() as servers:
        page = Page(driver, servers)
        page.open(page_folder(), width=1240, height=800, reduced_motion=True)
        picture = Image.open(page.window())
        picture.convert("RGB").quantize(96, dither=Image.Dither.NONE).save(FILE, optimize=True)


if __name__ == "__main__":
    main()
