"""How long the explorer occupies the main thread while somebody steps from number to number with the arrow keys:

python -m tests.browser.frames
"""

import contextlib
import itertools
import statistics
import sys
import tempfile
from pathlib import Path

import numpy as np

from minitransformer.config import TransformerConfig
from minitransformer.explorer import model_data, page_folder, write_page
from minitransformer.explorer.writing import ids_writing
from minitransformer.models import Transformer
from tests.browser import chromium
from tests.browser.explorer import open_explorer
from tests.browser.page import Page

VOCABULARY = 30
KEYS = ["ARROW_RIGHT", "ARROW_RIGHT", "ARROW_DOWN", "ARROW_LEFT"] * 5
ARRAYS = {  # small, large, and the one that goes to most others
    "the running example": ("cross.s", "encoder.ffn.W_1", "E"),
    "235,392 weights": ("decoder1.cross.s", "encoder1.ffn.W_1", "E"),
}


def large_model():
    """The data of a model of about 235,000 weights, close to the largest that the page takes."""
    config = TransformerConfig(d_model=64, num_heads=4, num_layers=2, d_ff=256, vocab_size=VOCABULARY)
    source = np.random.default_rng(0).integers(3, VOCABULARY, 8).tolist()
    model = Transformer(config, seed=0, dtype=np.float32)
    return model_data(model, ids_writing(VOCABULARY), source, source[::-1])


def busy(page, array, folder):
    """Milliseconds of processor time that the main thread spent on each key, with all that the key set off."""
    start(page, array, folder)
    page.driver.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
    times = [spent(page)]
    for key in KEYS:
        page.press(key)
        page.settle()
        times.append(spent(page))
    return [1000 * (after - before) for before, after in itertools.pairwise(times)]


def spent(page):
    metrics = page.driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    return next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration")


def start(page, array, folder):
    """Open the view of an array and put the focus on its map; no number is chosen yet."""
    open_explorer(page, f"view=cell&cell={array}", folder=folder, width=1440)
    page.settle()
    page.script("document.querySelector(`canvas[data-array='${arguments[0]}']`).focus()", array)
    page.settle()


def main():
    if reason := chromium.missing():
        sys.exit(f"This {reason}")
    driver = chromium.running(chromium.find_browser(), chromium.find_driver())
    print(f"{'processor':>16}  milliseconds of one key, median and longest of {len(KEYS)}, in")
    with driver as started, contextlib.ExitStack() as servers, tempfile.TemporaryDirectory() as parent:
        page = Page(started, servers)
        large = Path(parent) / "large"
        write_page(large_model(), large)
        for folder, (title, names) in zip((page_folder(), large), ARRAYS.items(), strict=True):
            for name in names:
                times = busy(page, name, folder)
                print(f"{statistics.median(times):8.1f} {max(times):7.1f}  {title}, {name}", flush=True)


if __name__ == "__main__":
    main()
