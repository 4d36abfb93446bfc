"""The paper's own task: translating sentences, by default German into English; and restoring those that are broken."""

import dataclasses
import math
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from minitransformer.backend import to_host
from minitransformer.checks import check_integer
from minitransformer.config import NORMS
from minitransformer.data import TranslationTask, load_bible, load_pairs, load_python_topics, load_text
from minitransformer.data.bible import LANGUAGES
from minitransformer.data.denoising import NOISES, DenoisingTask
from minitransformer.data.translation import MAX_LEN, EncodedPairs, fitting_vocab_size, shared_tokenizer
from minitransformer.decoding.search.translate import encode_source, find_translations, translate
from minitransformer.evaluation import mean_loss
from minitransformer.evaluation.translation import (
    bleu_by_length,
    frequent_words,
    has_sacrebleu,
    score,
)
from minitransformer.inspection import training_flops
from minitransformer.models import Seq2SeqConfig, Transformer, TransformerConfig
from minitransformer.models.before_2017.recurrent import Seq2Seq
from minitransformer.recipes.options import LAYER_OPTIONS, at_least_1, option, option_name
from minitransformer.recipes.recipe import RECURRENT, CorpusOptions, CorpusRecipe, Trained, check_recurrent
from minitransformer.recipes.text import PYTHON
from minitransformer.system.files import atomic_write
from minitransformer.system.progress import tqdm
from minitransformer.system.terminal import wrap
from minitransformer.tokenizers import BytePairTokenizer, Tokenizer
from minitransformer.tokenizers.byte_pair import SMALLEST
from minitransformer.training import History, cosine
from minitransformer.training.saving.averaging import AverageOfLast

SAMPLES = 10  # of the test pairs, which are printed and drawn
SMALL: dict[str, Any] = {"d_model": 96, "dropout": 0.2}  # for less than a million characters
REASONS = {
    "vocab_size": "the bytes, and a merge for every 2,000 characters: each is seen often",
    "d_model": "with so little text a smaller model is faster and errs no more",
    "dropout": "so that pairs that are read often are not learned by heart",
    "steps": "every pair is read about 6 times, and if there are few, many times",
}
TOKENS_AT_A_TIME = 4000  # of a batch outside training
OF_TRANSFORMERS = ("positions", "norm", "num_heads", "optimizer", "recompute", *LAYER_OPTIONS)
Model = Transformer | Seq2Seq


@dataclasses.dataclass(frozen=True)
class Seq2SeqOptions(CorpusOptions):
    """The options of a task from sentences to sentences."""

    batch_size: int = option(750, "tokens in a batch, of each side and padding included", at_least_1)
    warmup: int = option(400, "warm-up steps of the learning rate, at most a fifth of all", at_least_1, resumable=True)
    model: str = option("transformer", "architecture", choices=("transformer", *RECURRENT))
    vocab_size: int = option(4000, "byte pairs, shared by both sides", partial(check_integer, least=SMALLEST))
    norm: str = option("post", "where the layers normalize, after or before each sub-layer", choices=NORMS)


@dataclasses.dataclass(frozen=True)
class DenoiseOptions(Seq2SeqOptions):
    """The options of denoising."""

    noise: str = option("both", "order shuffles sentences, infilling hides spans of words", choices=NOISES)
    passage: int = option(200, "characters of a passage, at most", at_least_1)


@dataclasses.dataclass(frozen=True)
class TranslationOptions(Seq2SeqOptions):
    """The options of translation."""

    text: str | None = option(
        None,
        "UTF-8 file of pairs to train on: a sentence, a tab, its translation (default: the Bible), "
        "to which steps, sizes and dropout are then fitted unless you give them; with --resume its new place",
        resumable=True,
    )
    swap: bool = option(False, "translate the second column of --text into the first")
    source: str = option("german", "language of the Bible that is translated", choices=LANGUAGES)
    target: str = option("english", "language of the Bible that it is translated into", choices=LANGUAGES)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("source", "target"):
            if self.text is not None and getattr(self, name) != getattr(TranslationOptions, name):
                raise ValueError(f"--{name} chooses a language of the Bible: with --text it has no meaning")
        if self.swap and self.text is None:
            raise ValueError("--swap is for pairs of your own (--text); for the Bible use --source and --target")
        if self.source == self.target:
            raise ValueError(f"--source and --target must be two languages, got {self.source} twice")


class Translated(NamedTuple):
    """The sentences of the test, and what the model made of them."""

    sources: list[str]
    references: list[str]
    translations: list[str]  # by beam search


class TranslationRecipe(CorpusRecipe):
    """An encoder-decoder on pairs of sentences, with byte pairs that both languages share."""

    name = "translation"
    help = "a Transformer that translates German into English, or your own pairs of sentences"
    own_text, unit = "the Bible", "pairs"
    defaults = TranslationOptions(
        steps=10000, dropout=0.05, label_smoothing=0.1, positions="rope", d_model=160, num_layers=2
    )

    def fitting(self, given: dict[str, Any]) -> tuple[TranslationOptions, list[str]]:
        """Defaults that fit the number of characters in one's own pairs; for the Bible those of the class."""
        if given.get("text") is None:
            return self.defaults, []
        pairs = load_pairs(given["text"], given.get("swap", False)).train
        characters = sum(len(sentence) for pair in pairs for sentence in pair)
        fits = {"vocab_size": fitting_vocab_size(characters)} | (SMALL if characters < 1_000_000 else {})
        if "minutes" not in given:
            fits["steps"] = min(self.defaults.steps, max(2000, characters // 800))
        lines = [f"  {f'{option_name(name)} {fits[name]}':<18} {REASONS[name]}" for name in fits if name not in given]
        head = f"chosen to fit {len(pairs):,} pairs with {characters:,} characters:"
        return dataclasses.replace(self.defaults, **fits), [head, *lines] if lines else []

    def data(self, options: TranslationOptions, tokenizer: Tokenizer | None = None) -> TranslationTask:
        """The pairs, and the byte pairs that their training part has most often, if there is no `tokenizer`."""
        text, bible = options.text, (options.source, options.target)
        corpus = load_bible(*bible) if text is None else load_pairs(text, options.swap)
        return TranslationTask(corpus, tokenizer or shared_tokenizer(corpus, options.vocab_size), MAX_LEN)

    def model(
        self, options: TranslationOptions, data: TranslationTask
    ) -> tuple[type[Model], TransformerConfig | Seq2SeqConfig]:
        """The model and its sizes. Raises ValueError for an option that this model cannot have."""
        sizes: dict[str, Any] = {name: getattr(options, name) for name in ("d_model", "num_layers", "dropout")}
        vocab_size = data.tokenizer.vocab_size
        if options.model in RECURRENT:
            check_recurrent(options, self.defaults, OF_TRANSFORMERS)
            fields: dict[str, Any] = {**sizes, "hidden_size": options.d_model, **RECURRENT[options.model]}
            return Seq2Seq, Seq2SeqConfig(vocab_size, **fields, max_len=MAX_LEN)
        switches: dict[str, Any] = {"norm": options.norm, "positions": options.positions, **options.layer_fields()}
        heads: dict[str, Any] = {"num_heads": options.num_heads, "d_ff": 4 * options.d_model}
        return Transformer, TransformerConfig(vocab_size, **sizes, **heads, **switches, max_len=MAX_LEN)

    def metadata(self, data: TranslationTask) -> dict[str, Any]:
        """The tokenizer, and the characters of the sources that were learned from."""
        return {**super().metadata(data), "characters": "".join(sorted(set().union(*(p[0] for p in data.train.pairs))))}

    def schedule(self, options: TranslationOptions, config: Any) -> Callable[[int], float]:
        """A cosine after a warm-up."""
        warmup = min(options.warmup, max(1, options.steps // 5))
        return partial(cosine, steps=options.steps, peak=options.peak, warmup=warmup)

    def averaging(self, options: TranslationOptions) -> AverageOfLast:
        """The mean of the last 5 sets of weights, as in the paper (section 6.1), a hundredth of all steps apart."""
        return AverageOfLast(options.steps, interval=max(1, options.steps // 100))

    def largest_batch(self, options: TranslationOptions, data: TranslationTask) -> tuple[int, list[int]]:
        """As many pairs as there are of the longest in one batch, and their lengths."""
        longest = data.train.lengths.max(axis=0)
        return max(1, options.batch_size // int(longest.max())), longest.tolist()

    def describe(self, options: TranslationOptions, model: Model, data: TranslationTask) -> str:
        """The pairs, and the model."""
        left_out = sum(part.left_out for part in (data.train, data.validation, data.test))
        longer = f" (without {left_out:,} of more than {MAX_LEN} tokens)" if left_out else ""
        return (
            f"{self.name}: {len(data.train):,} {self.unit} to learn from, {len(data.validation):,} for validation, "
            f"{len(data.test):,} for the test{longer}; {data.tokenizer.vocab_size:,} tokens, "
            f"{model.num_parameters():,} parameters, {options.steps:,} steps"
        )

    def evaluation_callback(
        self, options: TranslationOptions, model: Model, data: TranslationTask, evaluations: list[Any]
    ) -> tuple[Callable[[int, History], None], int]:
        """The perplexity of the validation pairs and a translation of one of them, at regular intervals."""
        batches = list(batches_of(data.validation))
        source, reference = min(data.validation.pairs, key=lambda pair: abs(len(pair[0]) - 60))

        def evaluate(step: int, history: History) -> None:
            nats = mean_loss(model, batches)
            evaluations.append([step, nats])
            tqdm.write(f"\nstep {step:,}: perplexity {math.exp(min(nats, 700.0)):.1f} on validation {self.unit}")
            if math.isfinite(nats):
                tqdm.write(f"  {source}\n  -> {translate(model, data.tokenizer, [source], beam=1)[0]}\n  = {reference}")

        return evaluate, self.eval_interval(options)

    def evaluate(self, options: Any, model: Model, data: TranslationTask) -> tuple[dict[str, Any], Translated]:
        """The scores of all test pairs, and with sacrebleu BLEU of a translator that only counts words."""
        numbers, translated = score_pairs(model, data.tokenizer, data.test)
        if has_sacrebleu():
            frequent = frequent_words(translated.sources, [target for _, target in data.train.pairs])
            numbers["frequent_words_bleu"] = score(frequent, translated.references).bleu
        return {**numbers, "test_pairs": len(data.test)}, translated

    def report(self, trained: Trained) -> list[str]:
        """The scores, and ten translations."""
        result, translated = trained.result, trained.evaluated
        lines = score_lines(result, f"{result['test_pairs']:,} test {self.unit}")
        if "bleu" in result:
            lines.append(f"{'BLEU of frequent words':<26} {result['frequent_words_bleu']:.2f}")
            for group in bleu_by_length(*translated):
                lines.append(f"{f'BLEU, {group.words} words':<26} {group.bleu:.2f} on {group.sentences} sentences")
        if trained.options.attention == "full":
            flops = flops_of(trained.model.config, trained.data, trained.history.tokens)
            lines.append(f"{'FLOPs of training':<26} {flops:.2e}")
        samples = ["", f"Some of the test {self.unit}, evenly spread; translations.tsv has all of them:"]
        for row in spread(translated):
            source, reference, translation = (side[row] for side in translated)
            samples += [source, f"  -> {translation}", *([f"  right: {reference}"] if translation != reference else [])]
        return [*lines, *samples, ""]

    def draw(self, trained: Trained, folder: Path) -> list[Path]:
        """The loss, BLEU by length, all translations of the test, and where the model attends in ten of them."""
        from minitransformer import plotting

        paths = [folder / "loss.png"]
        steps, nats = zip(*trained.evaluations, strict=True) if trained.evaluations else ((), ())
        bits = [value / math.log(2) for value in nats]
        smoothing = ", with label smoothing" if trained.options.label_smoothing else ""
        names = (f"training {self.unit}{smoothing}", f"validation {self.unit}, {'without it' if smoothing else 'all'}")
        plotting.plot_text_training(trained.history, steps, bits, paths[0], self.name, "token", names)
        if has_sacrebleu():
            paths.append(folder / "bleu.png")
            plotting.plot_bleu(bleu_by_length(*trained.evaluated), trained.result["bleu"], paths[-1])
        paths.append(folder / "translations.tsv")
        rows = ["source\treference\ttranslation", *map("\t".join, zip(*trained.evaluated, strict=True))]
        with atomic_write(paths[-1]) as partial_file:
            partial_file.write_text("\n".join(rows) + "\n", encoding="utf8")
        if trained.options.attention == "full" and trained.model.config.attention != "none":
            paths.append(folder / "attention.png")
            sources = [trained.evaluated.sources[row] for row in spread(trained.evaluated)]
            maps = list(attention_maps(trained.model, trained.data.tokenizer, sources))
            title = "Cross-attention of the last layer, mean of its heads, for some translations of the test"
            plotting.plot_samples(maps, paths[-1], title)
        return paths


class DenoiseRecipe(TranslationRecipe):
    """An encoder-decoder on passages of a text that are broken on purpose, and as they were: BART's objective."""

    name, own_text, unit = "denoise", PYTHON, "passages"
    help = "a Transformer that restores text: spans of it are hidden, and its sentences shuffled"
    defaults: Any = DenoiseOptions(steps=3000, positions="rope", d_model=96, num_layers=2, vocab_size=1000)
    fitting = CorpusRecipe.fitting

    def data(self, options: Any, tokenizer: Tokenizer | None = None) -> DenoisingTask:
        """Passages of the text, of new byte pairs if there is no `tokenizer`."""
        corpus = load_python_topics() if options.text is None else load_text(options.text)
        tokenizer = tokenizer or BytePairTokenizer.train(corpus.train, options.vocab_size)
        return DenoisingTask(corpus, tokenizer, options.passage, options.noise)


def score_pairs(model: Model, tokenizer: Tokenizer, pairs: EncodedPairs) -> tuple[dict[str, Any], Translated]:
    """Perplexity and exact match, and if sacrebleu is installed BLEU and chrF, and all translations."""
    sources, references = (list(side) for side in zip(*pairs.pairs, strict=True))
    with tqdm(total=len(sources), unit="sentence") as bar:
        beam = translate(model, tokenizer, sources, beam=4, on_progress=bar.update)
    numbers: dict[str, Any] = {
        "perplexity": math.exp(mean_loss(model, batches_of(pairs))),
        "exact_match": sum(map(str.__eq__, beam, references)) / len(references),
    }
    if has_sacrebleu():
        greedy = translate(model, tokenizer, sources, beam=1)
        numbers.update(score(beam, references)._asdict(), greedy_bleu=score(greedy, references).bleu)
        numbers["copy_bleu"] = score(sources, references).bleu
    return numbers, Translated(sources, references, beam)


def score_lines(result: dict[str, Any], pairs: str) -> list[str]:
    """What `score_pairs` has found for so many `pairs`, for the terminal."""
    lines = [
        f"{'perplexity of a token':<26} {result['perplexity']:.2f} on {pairs}",
        f"{'exact match, beam 4':<26} {math.floor(1000 * result['exact_match']) / 10:.1f} %",  # 100.0 % means all
    ]
    if "bleu" not in result:
        return [*lines, "BLEU needs sacrebleu, which is not installed: pip install -e '.[translation]'"]
    interval = "" if math.isnan(result["interval"]) else f" ± {result['interval']:.2f}"
    return [
        *lines,
        wrap(f"{result['bleu']:.2f}{interval}    {result['signature']}", f"{'BLEU, beam 4':<26} ", " " * 4),
        f"{'BLEU, greedy':<26} {result['greedy_bleu']:.2f}",
        f"{'chrF, beam 4':<26} {result['chrf']:.2f}",
        f"{'BLEU of the source itself':<26} {result['copy_bleu']:.2f}",
    ]


def spread(translated: Translated) -> list[int]:
    """Up to ten rows of the test, from the first to the last."""
    return sorted({int(row) for row in np.linspace(0, len(translated.sources) - 1, SAMPLES)})


def attention_maps(model: Model, tokenizer: Tokenizer, sources: list[str]) -> Iterator[tuple[np.ndarray, Any, Any]]:
    """For the translation of each source (weights (T, S), its T tokens, the S tokens of the source)."""
    from minitransformer.plotting import readable

    for text, found in zip(sources, find_translations(model, tokenizer, sources), strict=True):
        source = encode_source(tokenizer, text, model.config.max_len, model.config)
        weights = model.attention_weights(source[None], np.array([[model.config.start, *found.ids[:-1]]])).cross[-1][0]
        queries, keys = ([readable(tokenizer.tokens[id]) for id in ids] for ids in (found.ids, source))
        yield to_host(weights).mean(axis=0), queries, keys


def flops_of(config: Any, data: TranslationTask, tokens: float) -> float:
    """The operations in all matrix products of training on `tokens` of both sides, see `training_flops`."""
    lengths = data.train.lengths.mean(axis=0)
    return float(sum(training_flops(config, *tokens * lengths / lengths.sum(), *lengths).values()))


def batches_of(pairs: Any) -> Any:
    """All `pairs` in batches for evaluation."""
    return (pairs.batch(rows) for rows in pairs.batches(TOKENS_AT_A_TIME))
