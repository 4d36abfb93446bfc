"""`minitransformer train shakespeare` and `train masked`: a model of real text, character by character."""

import json
import math
import sys

import numpy as np

from minitransformer.cli.memory import check_memory
from minitransformer.cli.training_options import choose_threads, drop, make_keeper, training_folder
from minitransformer.data import MaskedTask, TextTask, load_shakespeare, load_text
from minitransformer.decoding import Sampling, generate
from minitransformer.decoding.incremental import SlidingState
from minitransformer.evaluation import mean_loss
from minitransformer.models import BERT, GPT, bert_config, gpt_config
from minitransformer.process import limit_threads
from minitransformer.progress import tqdm
from minitransformer.tokenizers import CharacterTokenizer
from minitransformer.training import TrainingSettings, save_checkpoint, train

TEXT_TASKS = ("shakespeare", "masked")
SIZES = {"d_model": 128, "num_heads": 4, "d_ff": 512, "num_layers": 4}
PEAK = 2e-3  # highest learning rate, of a cosine
PROMPT = "ROMEO\n"
LOOKS = 10  # at the held-out text while learning
GLANCE = 64  # windows of it at each look, from all over it


def add_text_arguments(parser):
    """What only the tasks on text take."""
    group = parser.add_argument_group("on text (shakespeare, masked)")
    group.add_argument("--text", metavar="FILE", help="a text of your own, in UTF-8, in place of Shakespeare's plays")
    group.add_argument("--length", type=int, default=128, help="characters in a window (default 128)")
    group.add_argument("--d-model", type=int, default=SIZES["d_model"], help=f"(default {SIZES['d_model']})")
    group.add_argument("--num-layers", type=int, default=SIZES["num_layers"], help=f"(default {SIZES['num_layers']})")
    group.add_argument("--peak", type=float, help=f"highest learning rate, of a cosine (default {PEAK})")


def run_text(arguments, begun=None):
    """Train, test on held-out text, print samples on the way, save the model and its figure."""
    corpus = load_shakespeare() if arguments.text is None else load_text(arguments.text)
    tokenizer = CharacterTokenizer.train(corpus.train + corpus.held_out)
    text_task = TextTask(corpus, tokenizer, arguments.length)
    masked = arguments.task == "masked"
    task = MaskedTask(text_task) if masked else text_task
    kind, config = model_to_make(arguments, task.vocab_size if masked else tokenizer.vocab_size)
    settings, threads = make_settings(arguments), choose_threads(arguments, small=False)
    with limit_threads(threads):
        smaller = ("--length", "--d-model", "--num-layers")
        check_memory(arguments, config, kind, [arguments.length], settings, smaller)
    model = begun.model if begun else kind(config, seed=arguments.seed)
    watcher = Watcher(model, task, text_task, settings, masked, begun.about.get("looks", []) if begun else [])
    keeper = make_keeper(arguments, looks=watcher.looks)
    for folder in (arguments.runs, arguments.plots):
        folder.mkdir(parents=True, exist_ok=True)
    print(
        f"{arguments.task}: {len(corpus.train):,} characters to learn from, {len(corpus.held_out):,} held out, "
        f"{tokenizer.vocab_size} tokens; {model.num_parameters():,} parameters, {settings.steps:,} steps",
        flush=True,
    )
    with limit_threads(threads):
        history = train(model, task, settings, watcher, keeper, begun and begun.state)
        nats = mean_loss(model, task.held_out_batches(64), settings.at_once)
    return report(arguments, model, tokenizer, history, watcher, nats)


def model_to_make(arguments, vocab_size):
    """A GPT, or for hidden characters a BERT, in the sizes that were asked for -> its class and its configuration."""
    sizes = {"d_model": arguments.d_model, "num_heads": SIZES["num_heads"], "d_ff": 4 * arguments.d_model}
    more = {"num_layers": arguments.num_layers, "max_len": arguments.length}
    choices = {**sizes, **more, "dropout": arguments.dropout, "positions": arguments.positions or "rope"}
    if arguments.task == "masked":
        return BERT, bert_config(vocab_size, **choices)
    return GPT, gpt_config(vocab_size, **choices)


def make_settings(arguments):
    """A cosine with a short warm-up."""
    return TrainingSettings(
        steps=2400 if arguments.steps is None else arguments.steps,
        batch_size=32 if arguments.batch_size is None else arguments.batch_size,
        warmup=100 if arguments.warmup is None else arguments.warmup,
        peak=PEAK if arguments.peak is None else arguments.peak,
        seed=arguments.seed,
        average_every=0,
        accumulate=1 if arguments.accumulate is None else arguments.accumulate,
        detect_anomaly=arguments.detect_anomaly,
    )


class Watcher:
    """Looks at the model now and then as it learns: its loss on held-out text, and for GPT what it says."""

    def __init__(self, model, task, text_task, settings, masked, looks):
        self.model, self.text_task, self.masked = model, text_task, masked
        self.every = max(1, settings.steps // LOOKS)
        self.glance, self.at_once = glance_at(task), settings.at_once
        self.seed = settings.seed
        self.looks = looks  # [step, bits per character] of each

    def __call__(self, step, history):
        """Called after each step."""
        if step % self.every:
            return
        bits = mean_loss(self.model, [self.glance], self.at_once) / math.log(2)
        self.looks.append([step, bits])
        tqdm.write(f"\nstep {step:,}: {bits:.3f} bits per {'hidden ' if self.masked else ''}character")
        if not self.masked and math.isfinite(bits):
            tqdm.write(sample(self.model, self.text_task.tokenizer, PROMPT, 160, self.seed))


def glance_at(task):
    """GLANCE windows of the held-out text, evenly spread -> a batch."""
    (batch,) = task.held_out_batches(sys.maxsize)
    rows = np.linspace(0, len(batch.targets) - 1, GLANCE).astype(int)
    return type(batch)(*(ids[rows] for ids in batch))


def sample(model, tokenizer, prompt, length, seed, temperature=0.8):
    """`length` characters that go on where `prompt` ends -> prompt and continuation."""
    prompt = "".join(character for character in prompt if character in tokenizer.tokens) or tokenizer.tokens[-1]
    ids = tokenizer.encode(prompt)[None]
    choose = Sampling(np.random.default_rng(seed), temperature)
    return prompt + tokenizer.decode(generate(SlidingState(model, 1), ids, length, choose, eos=None).ids[0])


def report(arguments, model, tokenizer, history, watcher, nats):
    """The closing table, the checkpoint, the figure and, for GPT, a sample."""
    from minitransformer.plotting import plot_text_training

    bits = nats / math.log(2)
    result = {
        "task": arguments.task,
        "seed": arguments.seed,
        "bits_per_character": bits,
        "perplexity": math.exp(nats),
        "steps": len(history.losses),
        "seconds": history.seconds,
        "tokens_per_second": history.tokens / history.seconds,
    }
    name = arguments.task
    checkpoint, figure = arguments.runs / f"{name}.safetensors", arguments.plots / f"train_{name}_loss.png"
    save_checkpoint(checkpoint, model, tokenizer=tokenizer.to_dict(), **result)
    drop(training_folder(arguments))
    asked = "hidden character" if name == "masked" else "character"
    title = f"Held-out text: {bits:.2f} bits per {asked} after {history.seconds:.0f} s"
    steps, looks = zip(*watcher.looks, strict=True) if watcher.looks else ((), ())
    plot_text_training(history, steps, looks, figure, title, f"bits per {asked}")
    saved = [checkpoint, figure]
    if name != "masked":
        text = sample(model, tokenizer, PROMPT, 600, arguments.seed)
        saved.append(arguments.plots / f"train_{name}_sample.txt")
        saved[-1].write_text(text.rstrip() + "\n", encoding="utf8")
        print(f"\n{text}\n")
    print(f"{f'bits per {asked}, held out':<34} {bits:.3f}")
    print(f"{'steps':<34} {result['steps']:,}")
    print(f"{'seconds of training':<34} {result['seconds']:.1f}")
    print(f"{'tokens per second':<34} {result['tokens_per_second']:,.0f}")
    print("saved", *(str(path) for path in saved))
    if arguments.json:
        print(json.dumps(result))
    return 0
