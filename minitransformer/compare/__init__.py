"""`minitransformer compare`: what attention replaced, in numbers that are measured here. One file per experiment.

An experiment is a module with

    NAME           what follows `minitransformer compare`
    DESCRIPTION    one line
    SECONDS        {quick: the most seconds that it takes on two cores, which the command prints beforehand}
    run(quick: bool, seed: int, directory: Path) -> dict[str, Any]
                   print a table, draw a figure into `directory`, and return the numbers

and a name in EXPERIMENTS. `tracing` counts while the code runs, `training` trains for an equal time.
"""

# in the order in which they run
EXPERIMENTS = ("table1", "gradient-reach", "one-vector", "alignment", "recall", "attention", "translation", "sharpness")
