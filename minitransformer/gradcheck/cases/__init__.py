"""The table of everything that has a backward pass, in every switch position: what `minitransformer gradcheck` runs.

A new function, layer or model gets its place by one `register` line in `functions`, `layers`, `positions`,
`models` or `models_family` here, which names what it covers; a test fails for a public one that has none.
"""

from minitransformer.gradcheck.cases import functions, layers, models, models_family, positions
from minitransformer.gradcheck.cases.models import check_base
from minitransformer.gradcheck.cases.registry import CASES, Case, select_cases

__all__ = ["CASES", "Case", "check_base", "functions", "layers", "models", "models_family", "positions", "select_cases"]
