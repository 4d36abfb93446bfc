"""What all configurations share: how numbers are checked, and what a file's claims are checked by."""

import math

from minitransformer.checks import check_choice, check_integer, check_number, check_rate, check_switch

NORMS = ("post", "pre", "sandwich")


class ModelConfig:
    """What a file's claims are checked by, and how the numbers that several models have are checked."""

    def least_weights(self) -> dict[str, int]:
        """Lower bounds on the number of weights, by the fields that they follow from."""
        raise NotImplementedError

    def table_sizes(self) -> dict[str, int]:
        """Sizes of tables that are computed and not stored, by the fields that they follow from."""
        return {}

    def _check(self, sizes=(), rates=(), switches=()):
        for name in sizes:
            check_integer(name, getattr(self, name), least=1)
        for name in rates:
            check_rate(name, getattr(self, name))
        for name in switches:
            check_switch(name, getattr(self, name))

    def _check_norm(self):
        check_choice("norm", self.norm, NORMS)
        if not 0.0 < check_number("norm_eps", self.norm_eps) < math.inf:  # at 0, equal features give 0 / 0
            raise ValueError(f"norm_eps must be greater than 0 and finite, got {self.norm_eps}")
