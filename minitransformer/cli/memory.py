"""Before `train` allocates anything large: does it fit, and if not, which options would let it."""

from minitransformer.backend import backend_name
from minitransformer.devices import free_memory
from minitransformer.inspection.memory_estimate import training_memory
from minitransformer.process import num_threads
from minitransformer.training.parallel import members_at_work

FLOATS_RESUMED = 3  # arrays as long as the weights, which have been read when a training is resumed


def add_memory_arguments(parser):
    """What has to do with memory."""
    group = parser.add_argument_group("memory")
    group.add_argument(
        "--accumulate", metavar="N", type=int, help="compute each batch in N parts, one after another (default 1)"
    )
    group.add_argument("--force", action="store_true", help="train even if the memory that is free seems too little")


def check_memory(arguments, config, kind, lengths, settings, others):
    """Raise ValueError if training needs more memory than is free, unless --force; say nothing if that is unknown.

    `lengths` as in `training_memory`. `others` are the options, beside --batch-size, that make the model or its input
    smaller. To be called where the threads are limited as in training.
    """
    free = free_memory()
    if free is None:
        return

    def needed(parts):
        return _needed(arguments, config, kind, lengths, settings, parts)

    whole = needed(settings.accumulate)
    if whole <= free:
        return
    need = f"this training needs about {_gigabytes(whole)} of memory, and {_gigabytes(free)} are free"
    if arguments.force:
        print(f"{need}: going on all the same (--force)", flush=True)
        return
    advice = []
    parts = settings.accumulate * 2
    while parts < 2 * settings.batch_size and not advice:
        parts = min(parts, settings.batch_size)
        less = needed(parts)
        if less <= free:
            advice = [f"--accumulate {parts} learns the same with {_gigabytes(less)}"]
        parts *= 2
    smaller = ("--batch-size", *others) if advice else others  # with no advice, one sequence alone is too much
    if smaller and arguments.resume is None:
        advice.append(f"a smaller {' or '.join(smaller)} needs less")
    raise ValueError(f"{need}: {'; '.join([*advice, '--force goes on all the same'])}")


def _needed(arguments, config, kind, lengths, settings, parts):
    """Bytes, beside those that a training that was taken up again holds already."""
    threads = num_threads() if backend_name() == "numpy" else 1
    members = members_at_work(threads, settings.batch_size, lengths[-1], config.d_model, parts)
    rows = members * -(-settings.batch_size // (members * parts))
    averages = 1 if settings.ema else settings.averaged if settings.average_every else 0
    memory = training_memory(config, rows, lengths, kind, members, averages)
    return memory.total - (FLOATS_RESUMED * memory.weights if arguments.resume else 0)


def _gigabytes(count):
    return f"{count / 1e9:,.1f} GB" if count >= 1e9 else f"{count / 1e6:,.0f} MB"
