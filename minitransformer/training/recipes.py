"""What each toy task needs to be learnt well by the tiny model."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Recipe:
    """How long and how fast to learn one task."""

    steps: int
    warmup: int = 100
    factor: float = 0.3


RECIPES = {
    "copy": Recipe(steps=2000),
    "reverse": Recipe(steps=2000),
    "sort": Recipe(steps=2500),
    "addition": Recipe(steps=6000, warmup=400, factor=0.5),
}
