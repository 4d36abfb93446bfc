"""Adding rows to a table at given indices: the gradient of every lookup."""

import numpy as np

from minitransformer.backend import to_device


def add_rows(table, ids, rows):
    """table[ids[n]] += rows[n] for all n, where an id may come more than once.

    table (V, C), ids (N,) integers on the host, rows (N, C); `table` is changed in place. The plain form is
    `np.add.at(table, ids, rows)`. It is slow on the host, and on a GPU the order of its sums changes from run to run.
    Here the rows are sorted by id, so that equal ones stand together, and then each row at an even place of its run
    takes the one behind it, each at a place divisible by 4 the one two behind it, and so on: every run's sum is in
    its first row after log2(longest run) rounds, the same to the last bit each time. Only ids are sorted, so a GPU
    has nothing to wait for.
    """
    order = np.argsort(ids, kind="stable")
    sorted_ids = ids[order]
    firsts = np.flatnonzero(np.diff(sorted_ids, prepend=-1))  # where each run starts
    lengths = np.diff(firsts, append=len(ids))
    place = np.arange(len(ids)) - np.repeat(firsts, lengths)  # in its run
    left = np.repeat(lengths, lengths) - place  # rows from here to the end of the run
    sums = rows[to_device(order)]
    step = 1
    while step < lengths.max(initial=0):
        takes = to_device(np.flatnonzero((place & (2 * step - 1) == 0) & (left > step)))
        sums[takes] += sums[takes + step]
        step *= 2
    table[to_device(sorted_ids[firsts])] += sums[to_device(firsts)]
