"""Averaging weights over the end of training (paper section 6.1: the last 5 checkpoints, 20 for the big model)."""

AVERAGED = 5  # sets of weights


def average(snapshots):
    """The mean of several arrays of one shape.

    Late in training the weights circle around a good place with a radius that the learning rate sets; their mean lies
    nearer to the centre than any of them.
    """
    total = snapshots[0].copy()
    for snapshot in snapshots[1:]:
        total += snapshot
    return total / len(snapshots)


class ExponentialAverage:
    """A running mean of the weights that forgets the old ones, in place of a list of snapshots. Not in the paper.

    ema <- decay ema + (1 - decay) weights, from 0, so that after t updates its weights sum to 1 - decay^t, by which
    `value` divides, as Adam does: decay = 0.99 looks back about 100 steps.
    """

    def __init__(self, decay):
        if not 0 <= decay < 1:
            raise ValueError(f"decay must be at least 0 and less than 1, got {decay}")
        self.decay, self.t, self.mean = decay, 0, 0.0

    def update(self, weights):
        """Take in the weights of one more step."""
        self.t += 1
        self.mean = self.decay * self.mean + (1.0 - self.decay) * weights

    def value(self):
        """The mean so far. Raises ValueError before the first update."""
        if not self.t:
            raise ValueError("there is nothing to average yet")
        return self.mean / (1.0 - self.decay**self.t)
