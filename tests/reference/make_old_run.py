"""Let version 0.1 save a small run and finish it, and store both beside this file.

Run by hand, with minitransformer 0.1 installed and nothing of this repository on the path:

    pip install minitransformer==0.1.0        or a checkout of the commit 26d645b
    python tests/reference/make_old_run.py

It writes old_run.safetensors, which is the checkpoint after step 70 of 100, and old_run_finished.safetensors, which is
the model at the end: the average of the weights after steps 20, 60 and 100, of which the checkpoint holds two.
Everything is in float64, so that the rounding of other processors cannot be seen.
"""

import tempfile
from functools import partialmethod
from pathlib import Path

from minitransformer.cli import make_parser, train
from minitransformer.models import Transformer, TransformerConfig

HERE = Path(__file__).parent
SIZES = {"d_model": 8, "num_heads": 2, "d_ff": 12, "num_layers": 1, "max_len": 16}
LINE = "train copy --steps 100 --batch-size 4 --warmup 20 --dropout 0.1 --seed 3 --threads 1 --every 10 --keep 20"


def main():
    """Train, and keep two of the files."""
    train.named_config = lambda name, vocab_size, **switches: TransformerConfig(vocab_size, **SIZES, **switches)
    Transformer.__init__ = partialmethod(Transformer.__init__, dtype="float64")
    train.drop = lambda folder: (folder / "step-00000070.safetensors").rename(HERE / "old_run.safetensors")
    with tempfile.TemporaryDirectory() as folder:
        train.run(make_parser().parse_args([*LINE.split(), "--runs", folder, "--plots", folder]))
        (Path(folder) / "copy.safetensors").rename(HERE / "old_run_finished.safetensors")


if __name__ == "__main__":
    main()
