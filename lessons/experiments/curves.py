"""Does a model learn along the same curve here and in PyTorch, from the same weights on the same batches?

A GPT on windows of Shakespeare, or an encoder-decoder on German and English sentences, for 300 steps without dropout.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import minitransformer as mt
from experiments.measuring.steps import LABEL_SMOOTHING, make_training_step, need, step_in_pytorch
from experiments.report import Figure, Options, Parser, Rows, Table
from minitransformer.data import load_bible
from minitransformer.plotting import BLUE, GREY, ORANGE, count_steps, plot_line, pyplot
from minitransformer.system.progress import tqdm
from minitransformer.training.batches import Batches

if TYPE_CHECKING:
    import torch


class Problem(NamedTuple):
    """What both libraries learn, and how. The learning rate is a cosine; there is no dropout."""

    title: str
    model: type[mt.GPT] | type[mt.Transformer]
    config: mt.TransformerConfig  # without dropout, because the two would draw different masks
    data: Any  # see data/task.py
    batch_size: int
    steps: int
    warmup: int
    peak: float  # the largest learning rate
    label_smoothing: float = 0.0


def shakespeare() -> Problem:
    """A GPT of the sizes of `minitransformer train shakespeare`, on windows of 128 characters."""
    corpus, length = mt.load_shakespeare(), 128
    task = mt.TextTask(corpus, mt.CharacterTokenizer.train(corpus.train + corpus.held_out), length)
    sizes = {"d_model": 128, "num_heads": 4, "d_ff": 512, "num_layers": 4, "max_len": length}
    config = mt.gpt_config(task.tokenizer.vocab_size, dropout=0.0, **sizes)
    return Problem("Shakespeare", mt.GPT, config, task, batch_size=32, steps=300, warmup=100, peak=2e-3)


def translation() -> Problem:
    """An encoder-decoder on pairs of German and English sentences of up to 40 tokens, in batches of 1,500 tokens."""
    corpus, length = load_bible(), 40
    text = "\n".join(sentence for pair in corpus.train for sentence in pair)
    task = mt.TranslationTask(corpus, mt.BytePairTokenizer.train(text, 4000), length)
    sizes: dict[str, Any] = {"d_model": 160, "num_heads": 4, "d_ff": 640, "num_layers": 3, "max_len": length}
    config = mt.TransformerConfig(task.tokenizer.vocab_size, norm="pre", dropout=0.0, **sizes)
    problem = Problem("Translation", mt.Transformer, config, task, batch_size=1500, steps=300, warmup=100, peak=2e-3)
    return problem._replace(label_smoothing=LABEL_SMOOTHING)


# what is learned, by name
PROBLEMS: dict[str, Callable[[], Problem]] = {"shakespeare": shakespeare, "translation": translation}
ON_ANY_DEVICE = True
SECONDS = {True: 60, False: 400}
THREADS = None
QUICK_STEPS = 20


def add_options(parser: Parser) -> None:
    """The options that only this experiment has."""
    about = "what is learned (default shakespeare)"
    parser.add_argument("problem", nargs="?", default="shakespeare", choices=list(PROBLEMS), help=about)


def rows(options: Options) -> Rows:
    """Both losses of every step, in nats per token. Raises ValueError without PyTorch or the text."""
    need("curves", torch="oracle")
    problem = PROBLEMS[options.problem]()
    if options.quick:
        problem = problem._replace(steps=min(problem.steps, QUICK_STEPS))
    with tqdm(total=problem.steps, unit="step") as bar:
        losses = loss_curves(problem, seed=options.seed, after_step=bar.update)
    found = enumerate(zip(*losses.tolist(), strict=True), start=1)
    return {"losses": [{"problem": problem.title, "step": i, "numpy": a, "pytorch": b} for i, (a, b) in found]}


def tables(rows: Rows) -> list[Table]:
    """The last losses, and how far the two are apart."""
    first, last = rows["losses"][0], rows["losses"][-1]
    apart = [abs(row["numpy"] - row["pytorch"]) for row in rows["losses"]]
    columns = [f"ours after {last['step']} steps", "PyTorch", "largest difference", "at step 1", "median"]
    differences = [f"{x:.1e}" for x in (max(apart), apart[0], np.median(apart))]
    cells = [first["problem"], f"{last['numpy']:.4f}", f"{last['pytorch']:.4f}", *differences]
    return [Table("loss (nats per token)", ["problem", *columns], [cells])]


def findings(rows: Rows) -> list[str]:
    """How far the curves are apart."""
    apart = max(abs(row["numpy"] - row["pytorch"]) for row in rows["losses"])
    return [f"{rows['losses'][0]['problem']}: our loss and PyTorch's are at most {apart:.1g} nats apart"]


def draw(rows: Rows) -> Figure:
    """Both losses, and below them their difference."""
    losses = np.array([[row["numpy"], row["pytorch"]] for row in rows["losses"]]).T
    figure, (top, bottom) = pyplot().subplots(2, 1, figsize=(6.4, 4.6), sharex=True, height_ratios=(2, 1))
    steps = np.arange(1, losses.shape[1] + 1)
    plot_line(top, steps, losses[1], color=ORANGE, linewidth=4, alpha=0.5, label="PyTorch")
    plot_line(top, steps, losses[0], color=BLUE, linewidth=1, label="this library")
    top.set(ylabel="loss (nats per token)", title=findings(rows)[0])
    top.legend()
    plot_line(bottom, steps, losses[0] - losses[1], color=GREY, linewidth=0.8)
    bottom.set(ylabel="ours − PyTorch's\n(nats per token)")
    count_steps(bottom)
    return figure


def loss_curves(
    problem: Problem, seed: int = 0, dtype: str = "float32", after_step: Callable[[], Any] = lambda: None
) -> np.ndarray:
    """Train our model and PyTorch's, on the same batches -> losses (2, steps) in nats: ours, then PyTorch's.

    `after_step` is called after every step.
    """
    import torch

    ours = problem.model(problem.config, seed=seed, dtype=dtype)
    train_step = make_training_step(ours, problem.label_smoothing)
    theirs = pytorch_copy(ours, getattr(torch, dtype))
    optimizer = torch.optim.Adam(theirs.parameters(), betas=(0.9, 0.98), eps=1e-9)
    batches = Batches(problem.data, problem.batch_size, seed)
    losses = np.empty((2, problem.steps))
    for i in range(problem.steps):
        batch, lr = next(batches), mt.cosine(i + 1, problem.steps, problem.peak, problem.warmup)
        losses[0, i] = float(train_step(batch, lr))
        for group in optimizer.param_groups:
            group["lr"] = lr
        arrays = (torch.from_numpy(np.ascontiguousarray(ids)) for ids in (*batch.inputs, batch.targets))
        losses[1, i] = step_in_pytorch(theirs, optimizer, *arrays, label_smoothing=problem.label_smoothing).item()
        after_step()
    return losses


def pytorch_copy(ours: mt.GPT | mt.Transformer, dtype: "torch.dtype") -> "torch.nn.Module":
    """The same model in PyTorch, with the weights of ours."""
    from experiments.measuring import pytorch_gpt, pytorch_model

    if isinstance(ours, mt.GPT):
        gpt = pytorch_gpt.PyTorchGPT(ours.config).to(dtype)
        pytorch_gpt.load_ours(gpt, ours)
        return gpt
    transformer = pytorch_model.PyTorchTransformer(ours.config, dtype)
    pytorch_model.load_ours(transformer, ours)
    return transformer
