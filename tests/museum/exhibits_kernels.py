"""Bugs in the CUDA source of the kernels. They are planted where the source is read, before it is compiled."""

from minitransformer.exercises.planting import Exhibit
from minitransformer.kernels import launch


def in_cuda(name, lesson, old, new):
    """An exhibit that replaces `old` by `new` in the CUDA source."""
    read = '.read_text("utf-8")'
    return Exhibit(name, lesson, launch.source, read, f"{read}.replace({old!r}, {new!r})")


EXHIBITS = (
    in_cuda(
        "the lanes without a warp of their own put in a score of 0",
        "What changes nothing in a sum changes a maximum: in a long row that is negative throughout, 0 is the largest.",
        "Max(), minus_infinity()",
        "Max(), (real)0",
    ),
    in_cuda(
        "the kernel takes scores that have overflowed for forbidden ones",
        "The plain formula looks at the mask. Do both backends give the same?",
        "empty = team_max(some) == 0;",
        "empty = team_max(some) >= 0;",
    ),
    in_cuda(
        "the kernel lets the squares of a large token overflow",
        "1 / sqrt(infinity) is 0: finite, and wrong.",
        "eps >= SMALL_EPS && inverse != 0",
        "eps >= SMALL_EPS",
    ),
    in_cuda(
        "the kernel leaves the rounding error of a large mean in x_hat",
        "At a mean of 1e6, float32 knows the mean to 0.03.",
        "fabs(mean * r) > FAR",
        "false",
    ),
    in_cuda(
        "a row of a whole block is summed by its first warp alone",
        "Right for all rows of up to 1024 numbers, which one warp takes alone.",
        "if (blockDim.x == WARP) return x;",
        "return x;",
    ),
)
