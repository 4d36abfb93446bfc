"""The experiments: questions that a measured table or figure answers, one file for each.

An experiment is a module whose docstring begins with its question, and that has

    SECONDS                {quick: the most seconds that it takes on two cores}
    THREADS                of NumPy: 1, unless it says None, for as many as there are
    PER_ROW                the default of --seconds, for an experiment that has this option
    SEEDS                  {quick: the default of --seeds}, for an experiment that has this option
    add_options(parser)    declare the options that this experiment alone has (may be left out)
    check(options)         raise ValueError for an option that cannot be used (may be left out)
    rows(options)          measure -> {name: [row, ...]}, numbers and strings alone, so that JSON can hold them
    tables(rows)           the rows as tables, for the terminal and for the pages in docs/
    findings(rows)         sentences whose numbers are computed from the rows
    draw(rows)             the figure, or None if there is nothing to draw (may be left out)
    passed(rows)           whether the exit status is 0 (may be left out)

`options` has those of the experiment, `quick`, `seed` and `backend`, `seeds` if there are SEEDS, and `unfinished`, a
file for the rows of a run that may be interrupted (`paired.collect`). `running` runs an experiment, `report` has its
tables, and what several of them measure with is in `measuring/`. Only this room knows PyTorch.
"""

# in the order of the list; a dash stands for an underscore in the file's name
EXPERIMENTS = (
    *("speed", "step-growth", "decoding", "speculative"),
    *("attention-cost", "processes", "communication", "device"),
    *("table1", "gradient-reach", "one-vector", "translation", "heads", "table3", "table4"),
    "experts",
    *("scaling-law", "knock-out", "faithfulness", "adversary", "coreference", "induction", "grokking", "superposition"),
    *("since-2017", "attention-kinds", "lengths", "curves", "sharpness", "speedrun"),
    *("digits", "classification", "denoising", "finetuning", "preferences", "sharing", "decoders"),
)
