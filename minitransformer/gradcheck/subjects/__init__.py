"""The table of everything that has a backward pass, in every switch position: what `minitransformer gradcheck` runs.

To add a function, a layer or a model, write a function that makes its `Problem`, and one `register` line for each
position of its switches, in one of the files of this folder. A test fails for a public one without a row. The same
rows are used by the property tests, the protocol tests and the comparison with PyTorch.
"""

from minitransformer.gradcheck.subjects import convolution, functions, layers, models, positions, recurrent  # noqa: F401
from minitransformer.gradcheck.subjects.models import BASE
from minitransformer.gradcheck.subjects.table import SUBJECTS, Problem, Sizes, Subject, select_subjects

__all__ = ["BASE", "SUBJECTS", "Problem", "Sizes", "Subject", "select_subjects"]
