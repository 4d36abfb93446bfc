"""The judge of a Transformer that somebody has written into a blank file: its pieces, the whole, and 1,000 words.

`minitransformer blank FILE` lets a process run `main` twice, with "prove" and with "teach". What a file must respect
stands in lessons/blank_file.py.
"""

import contextlib
import inspect
import os
import re
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from support.piece import Piece, is_pair

import numpy as np

from minitransformer.data import get_task
from minitransformer.data.tasks import make_batch
from minitransformer.evaluation import decode_and_score
from minitransformer.exercises.exercise import load
from minitransformer.exercises.report import paint
from minitransformer.exercises.runner import Printed
from minitransformer.gradcheck import Report, check_layer
from minitransformer.gradcheck.judge.clues import crash
from minitransformer.gradcheck.judge.examine import ANALYTIC, UNKNOWN
from minitransformer.gradcheck.judge.report import CANNOT_TELL, COMPLEX_STEP, OK, RICHARDSON, WRONG
from minitransformer.gradcheck.judge.use import placed_errors
from minitransformer.layers import CrossEntropyLoss
from minitransformer.system.progress import tqdm
from minitransformer.system.terminal import error_message, wrap
from minitransformer.training import Adam, training_step
from minitransformer.training.schedules import cosine

Say = Callable[[str], Any]  # gets one line
TASK = get_task("reverse")
TASK.max_len = 8  # letters of a word
V = len(TASK.vocabulary)
STEPS, BATCH, PEAK = 700, 64, 3e-3  # of the training
WORDS, LEARNED = 1000, 900  # words that are asked, and how many must be right
THE_WHOLE = "the whole"
SHOWN = 8  # names of arrays
SIZES = "forward takes other sizes"  # how a doubt begins; one such size is enough to look at
MISFIT = re.compile(r"matmul: .+\(size (\d+) is different from (\d+)\)")
COLOURS = {OK: "green", WRONG: "red"}
MEET = (
    "Every piece with an example() is right by itself, so look at the other pieces, and at where they meet. Roads that "
    "meet add their gradients: around and through a sub-layer, x in self-attention by three roads, M in every decoder "
    "layer, E wherever it is used."
)
SLOW = (
    "The gradients are right, so the forward computes something else than you mean, or the first weights have the "
    "wrong size: is the output of each layer about as large as its input (lesson 12)?"
)
WIDENED = (
    "(The weights are float32, but the scores are float64, which takes longer. np.sqrt(C) is a float64 and turns what "
    "it meets into float64; C**0.5 doesn't.)"
)


class Whole(Piece):
    """What the file's `model()` returns: it reads ids (B, S) and (B, T), and gives scores (B, T, V)."""

    def __init__(self, module: ModuleType) -> None:
        with placed_errors("model"):
            made = module.model()
        made, *weights = made if isinstance(made, tuple) and not is_pair(made) else (made,)
        ids = np.zeros((1, 1), int)
        super().__init__(made, [*weights, ids, ids])
        if not self.parameters():
            raise ValueError("there is nothing to learn: no array has its gradient beside it, and none is an input")

    def forward(self, source: Any, read: Any, rng: Any = None) -> tuple[Any, Any]:  # type: ignore[override]
        """Scores and cache; ValueError for scores of another shape."""
        z, cache = super().forward(source, read)
        if np.shape(z) != (*read.shape, V):
            raise ValueError(f"the output has the shape {np.shape(z)}, not {(*read.shape, V)}: a score for each token")
        return z, cache


def prove(module: ModuleType, say: Say) -> bool:
    """Judge each piece that has an example, and then the whole -> whether all is right."""
    pieces, wrong = dict(examples_in(module)), 0
    for name, example in pieces.items():
        if example is not None:
            right, verdict, details = judged(name, partial(try_piece, example, explained=not wrong))
            for line in [verdict, *details] if not wrong else [verdict]:  # the first may explain the others
                say(line)
            wrong += not right
    if wrong > 1:
        say("only the first WRONG is explained, for it may be the reason for the others")
    if None in pieces.values():
        untried = [name for name, example in pieces.items() if example is None]
        say(f"not tried by themselves, as they have no example(): {', '.join(untried)}")
    if not hasattr(module, "model"):
        say("there is no model() yet, the function that returns the whole")
    if wrong or not hasattr(module, "model"):
        return False
    right, verdict, details = judged(THE_WHOLE, partial(try_whole, module))
    for line in (verdict, *details):
        say(line)
    return right


def examples_in(module: ModuleType) -> Iterator[tuple[str, Callable[[], Any] | None]]:
    """(name, what makes its example, or None) of each class with a forward, and each function called example..."""
    for name, value in list(vars(module).items()):
        if inspect.isclass(value) and value.__module__ == module.__name__ and hasattr(value, "forward"):
            yield name, value.example if "example" in vars(value) else None  # type: ignore[attr-defined]
        elif inspect.isfunction(value) and name.startswith("example"):
            yield name.removeprefix("example").strip("_") or name, value


def judged(name: str, attempt: Callable[[], Report]) -> tuple[bool, str, list[str]]:
    """Whether an attempt ends well, and what to say about it: a line, and details."""
    try:
        report = attempt()
    except (Exception, SystemExit) as error:
        if isinstance(error.__cause__, NotImplementedError):
            return False, f"{paint('open', 'yellow'):<6} {name}: not written yet", []
        message = MISFIT.sub(r"the inner sizes of @ don't fit, they are \2 and \1", error_message(error))
        return False, f"{paint(WRONG, 'red'):<6} {name}", [f"  {message}"]
    verdict = f"{paint(report.verdict, COLOURS.get(report.verdict, 'yellow')):<6} {name}"
    count = len(report.checks)
    if report.passed:
        verdict += f": {count} gradient{'s' * (count != 1)}, off by at most {report.error:.0e}"
    elif report.failures:
        verdict += f": wrong in {len(report.failures)} of {count} arrays"
    return report.verdict != WRONG, verdict, details_of(report)


def details_of(report: Report) -> list[str]:
    """What a report that is not OK says, indented."""
    sizes = [doubt for doubt in report.doubts if doubt.startswith(SIZES)]
    lines = [*report.broken, *(plainly(doubt) for doubt in report.doubts if doubt not in sizes[1:])]
    if report.verdict == CANNOT_TELL and not lines:
        lines.append(report.reason)
    if report.name == THE_WHOLE and report.failures:
        wrong = [check.name for check in report.failures]
        right = [check.name for check in report.checks if check.passed]
        lines += [f"wrong: {some(wrong)}", f"right: {some(right)}", MEET]
    else:
        for check in report.failures[:SHOWN]:
            where = f"{check.name}[{', '.join(map(str, check.index))}]"
            lines.append(f"{where}: yours {check.got:.6g}, right {check.expected:.6g}")
    lines += [f"-> {clue}" for clue in report.clues]
    return [f"  {line}" for line in lines]


def plainly(doubt: str) -> str:
    """A doubt about an array that may be a weight, without the library's names, or about sizes, with a remedy."""
    if doubt.startswith(SIZES):
        return f"{doubt}. Does the example hold a mask of the old length? Then make it an input"
    path, found, _ = doubt.removeprefix("the output depends on reached[").partition("], a plain array")
    path = path[1:-1]  # without its quotation marks
    remedy = f"If it is learned, it needs one; if not, say so with {path}.setflags(write=False)"
    return f"the output depends on {path}, which has no gradient beside it. {remedy}" if found else doubt


def some(names: list[str]) -> str:
    """The first of the names, and how many more there are."""
    return ", ".join(names[:SHOWN]) + f" and {len(names) - SHOWN} more" * (len(names) > SHOWN)


def try_piece(example: Callable[[], Any], explained: bool = True) -> Report:
    """Check the gradients of a piece on its example, and look for clues if they are to be `explained`."""
    with placed_errors("example"):
        made = example()
    if not isinstance(made, tuple) or len(made) != 2:
        raise TypeError(f"an example must return (piece, inputs), got {type(made).__name__}")
    piece = Piece(made[0], made[1] if isinstance(made[1], tuple) else (made[1],))
    piece.to_float64()
    return checked(piece, *piece.inputs, context=piece.context, names=piece.input_names, explained=explained)


def checked(piece: Piece, *inputs: np.ndarray, **options: Any) -> Report:
    """Check all gradients by the complex step, if the forward is analytic, and else by differences.

    `x.var()` and `abs(x)` are not, and the complex step doesn't see what they drop. So the two methods are first
    compared along a few directions through all arrays.
    """
    few = {**options, "together": True, "vary": False, "explained": False}
    trusted = check_layer(piece, *inputs, **few).reason in (ANALYTIC, UNKNOWN)
    method = {"method": COMPLEX_STEP} if trusted else {"method": RICHARDSON, "directions": 1}
    return check_layer(piece, *inputs, **method, **options)


def try_whole(module: ModuleType) -> Report:
    """Check what the scores of the whole must not depend on, and all gradients, along random directions."""
    whole, rng, pair = Whole(module), np.random.default_rng(0), batch_of("stop", "echo").inputs
    whole.to_float64()
    for parameter in whole.parameters():
        parameter.data = parameter.data + 0.1 * rng.standard_normal(parameter.data.shape)  # biases are 0 at first
    with placed_errors(), np.errstate(all="ignore"):
        broken = list(broken_laws(whole, *pair))
    if broken:
        return Report(THE_WHOLE, (), "", tuple(broken))
    options = {"name": THE_WHOLE, "explained": False, "max_entries": 0, "randomize": False, "vary": False}
    return checked(whole, context=pair, **options)


def batch_of(*words: str) -> Any:
    """Words of one length and their answers."""
    ids = np.array([TASK.encode(word) for word in words])
    return make_batch(ids, TASK.solve(ids))


def broken_laws(whole: Whole, source: np.ndarray, read: np.ndarray) -> Iterator[str]:
    """What the scores of every right Transformer obey, and these don't -> sentences."""
    z = whole(source, read)
    if not same(whole(source, np.where(np.arange(5) < 3, read, 9))[:, :3], z[:, :3]):
        yield "a row of scores changes with a token that comes after it: the decoder looks ahead (lesson 07)"
    if not same(whole(source[:1], read[:1]), z[:1]):
        yield "the scores of a word change with the other words of its batch: is there a sum over the wrong axis?"
    if not same(whole(np.pad(source, ((0, 0), (0, 2))), read), z):
        yield "the scores change with padding at the end of the source: nobody may attend to it (lesson 07)"
    if same(whole(source[:, [1, 0, 2, 3, 4]], read), z):
        yield "«stop» and «tsop» have the same scores: does the encoder know positions, and does the decoder read it?"
    if same(whole(source, read[:, [0, 2, 1, 3, 4]])[:, 3:], z[:, 3:]):
        yield (
            "the order of what the decoder has read makes no difference: does it know positions (lesson 09), and may "
            "a row attend to what came before it (lesson 07)?"
        )


def same(a: Any, b: Any) -> bool:
    """Whether scores are the same up to rounding."""
    return bool(np.abs(a - b).max() <= 1e-9 * np.abs(b).max())


def teach(module: ModuleType, say: Say, saved: Callable[[], Any]) -> bool:
    """Train the whole, and ask it unseen words -> whether it has learned. It ends early when the file is saved."""
    whole, loss_fn, rng, began = Whole(module), CrossEntropyLoss(label_smoothing=0.1), np.random.default_rng(0), saved()
    optimizer = Adam(whole.parameters())
    say(f"training: {whole.num_parameters():,} weights, {STEPS:,} steps of {BATCH} words")
    widened = whole(*TASK.batch(np.random.default_rng(0), 1).inputs).dtype == np.float64
    if widened and all(parameter.data.dtype == np.float32 for parameter in whole.parameters()):
        say(WIDENED)
    with tqdm(range(1, STEPS + 1)) as bar:
        for step in bar:
            optimizer.lr = cosine(step, STEPS, PEAK)
            loss, _ = training_step(whole, loss_fn, optimizer, TASK.batch(rng, BATCH))
            bar.set_postfix_str(f"loss {float(loss):.3f}")
            if saved() != began:
                say("the file was saved, so this training ends")
                return False
    batch = TASK.held_out_batch(np.random.default_rng(1), WORDS)
    answers, share = decode_and_score(whole, batch)
    right = round(share * WORDS)
    say(f"{right:,} of {WORDS:,} unseen words are reversed without a mistake; the loss is {float(loss):.3f}")
    for source, answer in list(zip(batch.source, answers, strict=True))[:3]:
        say(f"  {TASK.decode(source)} -> {TASK.decode(answer)}")
    say("It is yours, from the first line to the last." if right >= LEARNED else SLOW)
    return right >= LEARNED


def main(path: str, part: str) -> None:
    """Carry out "prove" or "teach", print what is found, and then what the file has printed -> exit status 0 or 1."""
    out, printed, right = sys.stdout, Printed(), False

    def say(line: str) -> None:
        indent = line[: len(line) - len(line.lstrip())]
        print(wrap(line.strip(), indent, f"{indent}  "), file=out, flush=True)

    def saved() -> Any:
        return os.path.getmtime(path) if os.path.exists(path) else None

    sys.path.insert(0, str(Path(path).resolve().parent))
    with contextlib.redirect_stdout(printed):
        try:
            module = load(Path(path), Path(path).stem)
            right = prove(module, say) if part == "prove" else teach(module, say, saved)
        except SyntaxError as error:
            say(f"the file cannot be read yet: {error.msg} in line {error.lineno}: {str(error.text).strip()}")
        except (Exception, SystemExit) as error:
            say(f"the file stops with {crash(error, path.__eq__)}")
    if printed.text.strip():
        print(f"your file printed:\n{printed.text.rstrip()}", file=out)
    out.flush()
    os._exit(0 if right else 1)  # without waiting for threads that the file may have started
