"""What every kind of training asks of the command line."""

from minitransformer.process import threads_are_chosen


def choose_threads(arguments, small):
    """As the command line says, then as the environment says; else one for a small model, and NumPy's own number.

    The tiny model's matrix products take a quarter of a millisecond. Shared by two threads, training took 0.8 times
    as long on an idle machine, and eight times as long on one where another process kept a processor busy.
    """
    if arguments.threads is not None and arguments.threads < 1:
        raise ValueError(f"--threads must be at least 1, got {arguments.threads}")
    if arguments.threads or threads_are_chosen():
        return arguments.threads
    return 1 if small else None
