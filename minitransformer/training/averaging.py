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
