"""The communication of tensor parallelism: f before the layers that are cut, g after them (Megatron-LM).

Two conventions make the derivatives unambiguous. An array of which every rank has an equal copy is ONE array, so its
gradient is the derivative with respect to a change of all copies at once. And a loss that every rank computes from
equal copies is ONE number; the ranks do not add their losses up.
"""

from typing import Protocol

from minitransformer.backend import xp


class Ranks(Protocol):
    """The ranks that share a layer. A communicator of `training.parallel` is one; layers need no more of it."""

    @property
    def rank(self) -> int:
        """Which of the ranks this is, from 0."""

    @property
    def size(self) -> int:
        """How many there are."""

    def add_up(self, array: xp.ndarray, in_order: bool = False) -> None:
        """Replace `array` (N,), in place, by the sum of the arrays of all ranks. All must call it."""


def copy_to_ranks(x: xp.ndarray, ranks: Ranks) -> tuple[xp.ndarray, Ranks]:
    """f of Shoeybi et al. 2019, section 3: each rank reads its own copy of x. x -> y, both of any one shape.

    Forward    y_r = x for each rank r. Every rank has x already, so nothing is sent
    Jacobian   dy_r/dx = 1 for each r: N identity matrices, one below the other
    Chain      dx = sum_r dy_r. The transpose is N identity matrices side by side, which is the Jacobian of g: each rank
               uses x for something else, and the gradient of a value that is used N times is the sum over its uses
    Remember   nothing but the ranks
    Check      f and g are each other's adjoint: sum_r <f(x)_r, dy_r> = <x, g(dy)>
    """
    return x, ranks


def copy_to_ranks_backward(dy: xp.ndarray, ranks: Ranks) -> xp.ndarray:
    """dx, the same in all ranks, from each rank's own dy; see `copy_to_ranks` for the derivation."""
    return _sum(dy, ranks)


def sum_over_ranks(x: xp.ndarray, ranks: Ranks) -> tuple[xp.ndarray, Ranks]:
    """g of Shoeybi et al. 2019, section 3: the sum of the ranks' arrays, in each of them. x -> y, of any one shape.

    Forward    y = sum_r x_r. In a forward pass, this is the only communication
    Jacobian   dy/dx_r = 1 for each r: N identity matrices, side by side
    Chain      dx_r = dy. The transpose is N identity matrices, one below the other, which is the Jacobian of f: every
               rank has dy already, so nothing is sent. Adding up dy here, too, would give N times the gradient: it
               counts the one loss once for each rank that has computed it
    Remember   nothing but the ranks
    Check      g and f are each other's adjoint: <g(x), dy> = sum_r <x_r, f(dy)_r>
    """
    return _sum(x, ranks), ranks


def sum_over_ranks_backward(dy: xp.ndarray, ranks: Ranks) -> xp.ndarray:
    """dx of this rank from dy, which is the same in all ranks; see `sum_over_ranks` for the derivation."""
    return dy


def _sum(x, ranks):
    """A new array, since `add_up` works in place."""
    total = x.copy()
    ranks.add_up(total.reshape(-1))
    return total
