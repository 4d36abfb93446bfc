"""How the cost of a training step grows with batch, length, width and depth."""

from minitransformer.bench.sizes import Size

BASE = Size("scaling", vocab_size=1000, d_model=128, num_heads=4, d_ff=512, num_layers=2, batch=16, length=32)

# what grows, the values it takes, and the power of it that the step's time should approach in the end
GROWTH = {
    "batch": ((2, 4, 8, 16, 32, 64, 128), 1),
    "length": ((8, 16, 32, 64, 128, 256, 512), 2),
    "d_model": ((32, 64, 128, 256, 512, 1024), 2),
    "num_layers": ((1, 2, 4, 8, 16), 1),
}


def grown(what, value):
    """The base size with one thing changed; d_ff stays 4 d_model, as in the paper, and heads keep 32 features."""
    changes = {what: value}
    if what == "d_model":
        changes |= {"d_ff": 4 * value, "num_heads": value // 32}
    return BASE._replace(**changes)
