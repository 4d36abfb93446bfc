"""The recipe for translation: small, but from start to end, on pairs in a file."""

import contextlib
import io
import itertools
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from minitransformer.cli import main
from minitransformer.data import load_pairs
from minitransformer.models import Seq2Seq, Transformer
from minitransformer.recipes import get_recipe
from minitransformer.recipes.translation import TranslationOptions
from minitransformer.tokenizers import tokenizer_from_dict
from minitransformer.training import load_checkpoint
from tests.cli.run import assert_refused, run
from tests.drawing import leave_undrawn

NOUNS = (("Hund", "dog"), ("König", "king"), ("Vogel", "bird"), ("Fluss", "river"), ("Baum", "tree"))
VERBS = (("sieht", "sees"), ("liebt", "loves"), ("sucht", "seeks"))
PAIRS = [
    (f"Der {one[0]} {verb[0]} den {other[0]}.", f"The {one[1]} {verb[1]} the {other[1]}.")
    for one, verb, other in itertools.product(NOUNS, VERBS, NOUNS)
]
SMALL = ("--d-model", 16, "--num-layers", 1, "--vocab-size", 280, "--batch-size", 200, "--warmup", 2, "--name", "small")


def write_pairs():
    Path("pairs.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in PAIRS), encoding="utf8")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch, request):
    """Every test runs in a folder that holds only a file of pairs, and prints no lines of progress."""
    if not request.node.get_closest_marker("draws"):
        leave_undrawn(monkeypatch)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("minitransformer.system.progress.LINE_INTERVAL", float("inf"))
    write_pairs()


def train(*more):
    """What a training prints, and its results."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        assert main(["train", "translation", "--text", "pairs.tsv", *map(str, (*SMALL, "--json", *more))]) == 0
    return said.getvalue(), json.loads(said.getvalue().splitlines()[-1])


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A training of ten steps -> what it prints, its results, the folder of the run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("trained"))
        patch.setattr("minitransformer.system.progress.LINE_INTERVAL", float("inf"))
        leave_undrawn(patch)
        write_pairs()
        return *train("--steps", 10), Path.cwd() / "runs" / "small"


def test_pairs_of_ones_own_are_learnt_and_what_was_promised_is_saved(trained):
    out, result, run_folder = trained
    files = {path.name for path in run_folder.iterdir()}
    assert files >= {"model.safetensors", "config.json", "log.csv", "loss.png", "bleu.png", "translations.tsv"}
    assert "attention.png" in files
    model, metadata = load_checkpoint(run_folder)
    assert isinstance(model, Transformer)
    assert metadata["bleu"] == result["bleu"]
    tokenizer = tokenizer_from_dict(metadata["tokenizer"])
    assert tokenizer.decode(tokenizer.encode("Der Fluß")) == "Der Fluß"
    rows = (run_folder / "translations.tsv").read_text("utf8").splitlines()
    assert len(rows) == 1 + result["test_pairs"]
    assert all(tuple(row.split("\t")[:2]) in PAIRS for row in rows[1:])
    for source, reference, translation in (row.split("\t") for row in rows[1:]):
        right = "" if translation == reference else f"\n  right: {reference}"
        assert f"\n{source}\n  -> {translation}{right}\n" in out


def test_flops_are_six_for_each_parameter_and_token_and_a_little_more(trained):
    out, result, run_folder = trained
    (line,) = (line for line in out.splitlines() if line.startswith("FLOPs of training"))
    parameters = load_checkpoint(run_folder)[0].num_parameters()
    tokens = result["tokens_per_second"] * result["seconds"] / 2  # of each side
    assert 0.8 < float(line.split()[-1]) / (6 * parameters * tokens) < 1.3


def test_what_one_gives_wins_and_only_what_was_chosen_has_a_reason(trained):
    out, _, run_folder = trained  # SMALL gives the sizes
    given = json.loads((run_folder / "config.json").read_text("utf8"))["options"]
    assert (given["steps"], given["vocab_size"], given["d_model"], given["dropout"]) == (10, 280, 16, 0.2)
    first, second, third = out.splitlines()[:3]
    assert first == "chosen to fit 71 pairs with 3,468 characters:"
    assert re.fullmatch(r"  --dropout 0\.2 +so that .+", second)
    assert third.startswith("translation: 71 pairs to learn from")


def test_a_resumed_run_keeps_what_was_chosen_and_its_tokens(trained, capsys, monkeypatch):
    """Another version may choose otherwise, and may make other tokens of the same text."""
    shutil.copytree(trained[2], "runs/small")
    _, before = load_checkpoint("runs/small")
    recipe = type(get_recipe("translation"))
    monkeypatch.setattr(recipe, "fitting", lambda self, given: pytest.fail("chosen again"))
    monkeypatch.setattr(
        "minitransformer.recipes.translation.shared_tokenizer", lambda *given: pytest.fail("new tokens")
    )
    assert run(capsys, "train", "--resume", "runs/small", "--steps", 11).status == 0
    options = json.loads(Path("runs/small/config.json").read_text("utf8"))["options"]
    assert (options["steps"], options["dropout"]) == (11, 0.2)
    assert load_checkpoint("runs/small")[1]["tokenizer"] == before["tokenizer"]


@pytest.mark.exhaustive
def test_simple_sentences_are_translated_after_a_short_training():
    _, result = train("--steps", 200, "--peak", 0.01, "--dropout", 0.0)
    assert result["bleu"] > 60 > result["copy_bleu"]
    assert result["perplexity"] < 3


def test_exact_match_is_the_share_of_translations_that_equal_their_reference(monkeypatch):
    def half_right(model, tokenizer, sources, beam, on_progress):  # greedy ones are for BLEU, which is not installed
        assert sources == [source for source, _ in tested]
        assert (beam, on_progress.__self__.total) == (4, len(sources))  # a long file shows how far it is
        return [target if i % 2 else target.lower() for i, (_, target) in enumerate(tested)]

    tested = get_recipe("translation").data(TranslationOptions(text="pairs.tsv", vocab_size=280)).test.pairs
    monkeypatch.setattr("minitransformer.recipes.translation.translate", half_right)
    monkeypatch.setattr("minitransformer.recipes.translation.has_sacrebleu", lambda: False)
    out, result = train("--steps", 1, "--eval-interval", 2)
    assert result["exact_match"] == (len(tested) // 2) / len(tested) > 0
    assert f"exact match, beam 4        {100 * result['exact_match'] - 0.05:.1f} %" in out


@pytest.fixture(scope="module")
def long_file(tmp_path_factory):
    """2.6 million characters in 20,000 pairs -> (its path, the characters that are trained on)."""
    path = tmp_path_factory.mktemp("long") / "long.tsv"
    pairs = [(f"{i} {'Ziege ' * 10}".strip(), f"{i} {'goat ' * 12}".strip()) for i in range(20_000)]
    path.write_text("".join(f"{a}\t{b}\n" for a, b in pairs), encoding="utf8")
    return path, sum(len(a) + len(b) for a, b in load_pairs(path).train)


def test_defaults_fit_the_size_of_the_file_and_those_of_the_bible_stay(long_file):
    recipe, (path, characters) = get_recipe("translation"), long_file
    few, many = (recipe.fitting({"text": str(text)})[0] for text in ("pairs.tsv", path))
    assert (few.steps, few.vocab_size, few.d_model, few.dropout) == (2000, 260, 96, 0.2)
    assert (many.steps, many.vocab_size) == (characters // 800, 259 + characters // 2000)
    assert (many.d_model, many.dropout) == (160, 0.05)
    assert recipe.fitting({"seed": 3}) == (recipe.defaults, [])
    bible = recipe.defaults
    assert (bible.steps, bible.vocab_size, bible.d_model, bible.dropout) == (10_000, 4000, 160, 0.05)


@pytest.mark.exhaustive
@pytest.mark.parametrize("model", ["lstm", "gru-attention"])
@pytest.mark.draws
def test_what_the_transformer_replaced_is_trained_with_the_same_recipe(model):
    _, result = train("--steps", 3, "--model", model)
    trained, _ = load_checkpoint("runs/small/model.safetensors")
    assert isinstance(trained, Seq2Seq)
    assert result["steps"] == 3


@pytest.mark.exhaustive
def test_minutes_set_the_number_of_steps():
    out, result = train("--minutes", 0.02)
    config = json.loads(Path("runs/small/config.json").read_text("utf8"))
    assert result["steps"] == config["options"]["steps"] > 1
    assert "measuring the speed for 0.02 minutes" in out


def test_minutes_and_steps_exclude_each_other(capsys):
    refused = "train: --steps and --minutes exclude each other\n"
    assert_refused(run(capsys, "train", "translation", "--minutes", 1, "--steps", 5), refused)


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (
            ("--text", "pairs.tsv", "--source", "french"),
            "--source chooses a language of the Bible: with --text it has no",
        ),
        (("--swap",), "--swap is for pairs of your own (--text); for the Bible use --source and --target"),
        (("--source", "english"), "--source and --target must be two languages, got english twice"),
        (("--source", "klingon"), "--source must be one of german, french, english, got 'klingon'"),
        (("--vocab-size", 258), "--vocab-size must be at least 259, got 258"),
        (("--text", "nothing.tsv"), "there is no file nothing.tsv"),
    ],
)
def test_impossible_options_are_refused_in_one_sentence(capsys, given, complaint):
    status, _, err = run(capsys, "train", "translation", *given)
    assert status == 2
    assert complaint in err
    assert err.count("\n") == 1


def test_warm_up_is_at_most_a_fifth_of_the_steps():
    recipe = get_recipe("translation")
    rate = recipe.schedule(TranslationOptions(steps=50, warmup=400, peak=0.5), None)
    rates = [rate(step) for step in range(1, 51)]
    assert np.argmax(rates) == 9
    assert rates[9] == 0.5


def test_averages_are_sets_of_the_last_steps():
    averaging = get_recipe("translation").averaging(TranslationOptions(steps=1000))
    assert [step for step in range(1, 1001) if averaging.includes(step)] == [960, 970, 980, 990, 1000]
