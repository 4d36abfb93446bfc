"""Bad command lines, and folders and disks that cannot be written."""

import errno
import os
import stat
from pathlib import Path

from tests.refusals.cases import command

COPY = ("train", "copy", "--steps", 2, "--batch-size", 4)
TEXT = ("train", "text", "--text", "my.txt", "--length", 16, "--d-model", 8, "--num-layers", 1, "--steps", 2)
TEXT += ("--batch-size", 2)
FROM = ("train", "text", "--text", "my.txt", "--steps", 2, "--batch-size", 2, "--from")
LONG = "x" * 300


def disk_full(patch):
    """Writing more than a hundred bytes to a file fails."""
    write = Path.write_bytes

    def write_bytes(path, data):
        if len(data) > 100:
            write(path, data[:100])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(path, data)

    patch.setattr(Path, "write_bytes", write_bytes)


def not_flushed(patch):
    """What was written to a file does not reach the disk."""

    def fsync(descriptor):
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    patch.setattr(os, "fsync", fsync)


def may_not_write(patch):
    """Writing fails with a PermissionError. The tests may run as root, for whom permissions do not matter."""

    def write_bytes(path, data):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    patch.setattr(Path, "write_bytes", write_bytes)


def may_not_read(patch):
    """Reading fails with a PermissionError."""

    def refuse(path, *mode):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    patch.setattr("minitransformer.system.files.open", refuse, raising=False)


OPTIONS = [
    command("command line", "no command"),
    command("command line", "an unknown command", "fly"),
    command("command line", "an unknown option", "train", "copy", "--fly"),
    command("command line", "an unknown option with a value", "train", "--resume", "runs/copy", "--fly", 9),
    command("command line", "a line break in an option", "train", "copy", "--fl\ny"),
    command("command line", "an option without its value", "train", "copy", "--steps"),
    command("command line", "a word instead of a number", "train", "copy", "--steps", "many"),
    command("command line", "a number of 5,000 digits", "summary", "tiny", "--vocab-size", "1" * 5000),
    command("command line", "a number above 2^63", "summary", "tiny", "--vocab-size", 10**30),
    command("command line", "a seed below 0", "gradcheck", "relu", "--seed", -1),
    command("command line", "an unknown backend", "gradcheck", "--backend", "jax"),
    command("train", "no task", "train"),
    command("train", "an unknown task", "train", "poetry"),
    command("train", "an unknown model", "train", "copy", "--model", "rnn"),
    command("train", "positions in a recurrent model", "train", "copy", "--model", "lstm", "--positions", "rope"),
    command("train", "an unknown configuration", "train", "copy", "--config", "huge"),
    command("train", "an unknown optimizer", *COPY, "--optimizer", "sgd"),
    command("train", "Muon in a recurrent model", "train", "copy", "--model", "lstm", "--optimizer", "muon"),
    command("train", "an unknown norm", "train", "copy", "--norm", "middle"),
    command("train", "unknown positions", "train", "copy", "--positions", "gps"),
    command("train", "an unknown kind of attention", "train", "copy", "--attention", "sparse"),
    command("train", "windowed attention without a window", "train", "copy", "--attention", "windowed"),
    command("train", "a window for full attention", "train", "copy", "--window", 4),
    command("train", "heads that cannot share the keys", *COPY, "--num-kv-heads", 3),
    command("train", "your own layers, with tiled attention", *COPY, "--mine", "--attention", "tiled"),
    command("train", "more pairs than letters", "train", "recall", "--pairs", 27),
    command("train", "no steps", "train", "copy", "--steps", 0),
    command("train", "no sequences in a batch", "train", "copy", "--batch-size", 0),
    command("train", "no warm-up", "train", "copy", "--warmup", 0),
    command("train", "a warm-up of 401 digits", "train", "copy", "--warmup", 10**400),
    command("train", "a factor of nan", "train", "copy", "--factor", "nan"),
    command("train", "an infinite factor", "train", "copy", "--factor", "inf"),
    command("train", "a dropout rate of 1", "train", "copy", "--dropout", 1),
    command("train", "no threads", "train", "copy", "--threads", 0),
    command("train", "too many threads", "train", "copy", "--threads", 10**18),
    command("train", "no steps between checkpoints", *COPY, "--checkpoint-interval", 0),
    command("train", "no checkpoint kept", *COPY, "--keep-checkpoints", 0),
    command("train", "to recompute an LSTM", *COPY, "--model", "lstm", "--recompute"),
    command("train", "more micro batches than sequences", *COPY, "--grad-accumulation-steps", 5),
    command("train", "an option of another task", *COPY, "--peak", 0.1),
    command("train", "a name with a slash", *COPY, "--name", "a/b"),
    command("train", "a folder with a finished model", *COPY, "--runs", ".", "--name", "finished"),
    command("train", "a folder with an unfinished run", *COPY, "--runs", ".", "--name", "unfinished"),
    command("train", "a folder that is no run's", *COPY, "--runs", ".", "--name", "plain", "--overwrite"),
    command("train", "a folder in use on another computer", *COPY, "--runs", ".", "--name", "locked"),
    command("train", "a task and --resume", *COPY[:2], "--resume", "runs"),
    command("train", "your own layers, for text", *TEXT, "--mine"),
    command("train on text", "a window of no characters", *TEXT, "--length", 0),
    command("train on text", "a number of characters", *TEXT, "--tokenizer", "characters", "--vocab-size", 300),
    command("train on text", "a text shorter than a window", *TEXT, "--length", 10**6),
    command("train on text", "a width of 0", *TEXT, "--d-model", 0),
    command("train on text", "a width that the heads cannot share", *TEXT, "--d-model", 9),
    command("train on text", "rotary positions with heads of odd width", *TEXT, "--d-model", 12),
    command("train on text", "linear attention with rotary positions", *TEXT, "--attention", "linear"),
    command("train on text", "more layers than anybody trains", *TEXT, "--num-layers", 2**63 - 1),
    command("train on text", "no layers", *TEXT, "--num-layers", 0),
    command("train on text", "no steps", *TEXT, "--steps", 0),
    command("train on text", "no sequences in a batch", *TEXT, "--batch-size", 0),
    command("train on text", "no warm-up", *TEXT, "--warmup", 0),
    command("train on text", "a learning rate of 0", *TEXT, "--peak", 0),
    command("train on text", "a learning rate below 0", *TEXT, "--peak", -1),
    command("train on text", "a learning rate of nan", *TEXT, "--peak", "nan"),
    command("train classify", "a line without a label", "train", "classify", "--text", "no_tab.tsv"),
    command("train classify", "one sentence of each label", "train", "classify", "--text", "pairs.tsv"),
    command("train --from", "a model that is missing", *FROM, "missing"),
    command("train --from", "a model without a tokenizer", *FROM, "mute.safetensors"),
    command("train --from", "a model of another kind", *FROM, "translator.safetensors"),
    command("train --from", "a model that is wider", *FROM, "gpt.safetensors", "--d-model", 16),
    command("train --from", "a model with other tokens", *FROM, "gpt.safetensors", "--tokenizer", "bytes"),
    command("train --from", "a model that reads less", *FROM, "gpt.safetensors", "--length", 10),
    command("train --from", "a model that lacks characters", *FROM, "gpt.safetensors", "--text", "own.py"),
    command("train --from", "for a toy task", *COPY, "--from", "toy.safetensors"),
    command("summary", "an unknown model", "summary", "huge"),
    command("summary", "a vocabulary for a model that has one", "summary", "gpt.safetensors", "--vocab-size", 9),
    command("summary", "a file that is no model", "summary", "my.txt"),
    command("summary", "an empty vocabulary", "summary", "tiny", "--vocab-size", 0),
    command("summary", "windowed attention without a window", "summary", "tiny", "--attention", "windowed"),
    command("summary", "more weights than fit into any memory", "summary", "tiny", "--vocab-size", 10**15),
    command("summary", "more weights than addresses", "summary", "tiny", "--vocab-size", 2**63 - 1),
    command("summary", "recomputed layers without a table of arrays", "summary", "tiny", "--recompute"),
    command("summary", "no sequences in a batch", "summary", "tiny", "--activations", "--batch-size", 0),
    command("gradcheck", "an unknown row", "gradcheck", "sotfmax"),
    command("gradcheck", "a missing file", "gradcheck", "missing.py:Mine"),
    command("gradcheck", "a missing class", "gradcheck", "own.py:Mine"),
    command("gradcheck", "no name after the colon", "gradcheck", "own.py:"),
    command("gradcheck", "a number instead of a class", "gradcheck", "own.py:number"),
    command("gradcheck", "a class that is not a layer", "gradcheck", "own.py:Empty"),
    command("gradcheck", "an error in a layer's own code", "gradcheck", "own.py:Fails"),
    command("gradcheck", "a forward without a cache", "gradcheck", "own.py:NoCache"),
    command("gradcheck", "an example without inputs", "gradcheck", "own.py:NoTuple"),
    command("gradcheck", "a file with a syntax error", "gradcheck", "broken.py:Mine"),
    command("gradcheck", "a file that ends the program", "gradcheck", "leaves.py:Mine"),
    command("gradcheck", "an input larger than any memory", "gradcheck", "own.py:Empty", "--shape", 2**63 - 1),
    command("gradcheck", "an input of negative length", "gradcheck", "own.py:Empty", "--shape", 2, -3),
    command("bench", "an unknown size", "bench", "giant"),
    command("bench", "no time to measure", "bench", "tiny", "--seconds", 0),
    command("bench", "infinite time to measure", "bench", "tiny", "--seconds", "inf"),
    command("bench", "a dropout rate of 1", "bench", "tiny", "--dropout", 1),
    command("experiment", "no steps", "experiment", "lengths", "--steps", 0),
    command("experiment", "no processes", "experiment", "lengths", "--jobs", 0),
    command("lesson", "an unknown lesson", "lesson", "99"),
    command("start", "an unknown exercise", "start", "99"),
    command("start", "a misspelt exercise", "start", "attention_bakward"),
    command("check", "no exercise started", "check", "all", "--folder", "empty_folder"),
    command("check", "no exercise given, and none started", "check", "--folder", "empty_folder"),
    command("hint", "hints for all exercises", "hint", "all", "--folder", "empty_folder"),
    command("init", "below a file", "init", "file/course"),
    command("check", "an exercise that was not started", "check", "06", "--folder", "empty_folder"),
]

FOLDERS = [
    command("--runs", "below a file", *COPY, "--runs", "file/runs"),
    command("--runs", "is a file", *COPY, "--runs", "file"),
    command("--runs", "read-only", *COPY, patch=may_not_write),
    command("--runs", "in a place where no folder can be created", *COPY, "--runs", "/proc/nothing"),
    command("--runs", "a name too long", *COPY, "--runs", LONG),
    command("--runs", "a name with a zero byte", *COPY, "--runs", "a\0b"),
    command("experiment", "an unknown experiment", "experiment", "table2"),
    command("--runs", "of experiment", "experiment", "table1", "--quick", "--runs", "file"),
    command("--runs", "of bench", "bench", "tiny", "--runs", "file"),
    command("--folder", "is a file", "start", "06", "--folder", "file"),
    command("--folder", "its notes are a list", "progress", "--folder", "notes_list"),
    command("--folder", "its notes have a word instead of a number", "hint", "06", "--folder", "notes_text"),
    command("--folder", "its notes are cut off", "progress", "--folder", "notes_half"),
    command("disk", "failing when a file is flushed", *COPY, patch=not_flushed),
    command("disk", "full when a toy model is saved", *COPY, patch=disk_full, late=True),
    command("disk", "full when a checkpoint is saved", *COPY, "--checkpoint-interval", 1, patch=disk_full, late=True),
    command("disk", "full when a model of text is saved", *TEXT, patch=disk_full, late=True),
]

CASES = [*OPTIONS, *FOLDERS]
