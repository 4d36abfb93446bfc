"""The recipe for translation: small, but from start to end, on pairs in a file."""

import itertools
import json
from pathlib import Path

import numpy as np
import pytest

from minitransformer.models import Seq2Seq, Transformer
from minitransformer.recipes import get_recipe
from minitransformer.recipes.translation import TranslationOptions
from minitransformer.tokenizers import tokenizer_from_dict
from minitransformer.training import load_checkpoint
from tests.cli.run import assert_refused, run

NOUNS = (("Hund", "dog"), ("König", "king"), ("Vogel", "bird"), ("Fluss", "river"), ("Baum", "tree"))
VERBS = (("sieht", "sees"), ("liebt", "loves"), ("sucht", "seeks"))
PAIRS = [
    (f"Der {one[0]} {verb[0]} den {other[0]}.", f"The {one[1]} {verb[1]} the {other[1]}.")
    for one, verb, other in itertools.product(NOUNS, VERBS, NOUNS)
]
SMALL = ("--d-model", 16, "--num-layers", 1, "--vocab-size", 280, "--batch-size", 200, "--warmup", 2, "--name", "small")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Every test runs in a folder that holds only a file of pairs, and prints no lines of progress."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("minitransformer.system.progress.LINE_INTERVAL", float("inf"))
    (tmp_path / "pairs.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in PAIRS), encoding="utf8")
    return tmp_path


def train(capsys, *more):
    status, out, err = run(capsys, "train", "translation", "--text", "pairs.tsv", *SMALL, "--json", *more)
    assert (status, err) == (0, "")
    return out, json.loads(out.splitlines()[-1])


def test_pairs_of_ones_own_are_learnt_and_what_was_promised_is_saved(capsys, folder):
    out, result = train(capsys, "--steps", 20)
    files = {path.name for path in (folder / "runs" / "small").iterdir()}
    assert files >= {"model.safetensors", "config.json", "log.csv", "loss.png", "bleu.png", "translations.tsv"}
    model, metadata = load_checkpoint("runs/small/model.safetensors")
    assert isinstance(model, Transformer)
    assert metadata["bleu"] == result["bleu"]
    tokenizer = tokenizer_from_dict(metadata["tokenizer"])
    assert tokenizer.decode(tokenizer.encode("Der Fluß")) == "Der Fluß"
    assert {"best", "median", "worst"} <= {line.split(":")[0] for line in out.splitlines()}
    rows = (folder / "runs" / "small" / "translations.tsv").read_text("utf8").splitlines()
    assert len(rows) == 1 + result["test_pairs"]
    assert all(tuple(row.split("\t")[:2]) in PAIRS for row in rows[1:])


def test_flops_are_six_for_each_parameter_and_token_and_a_little_more(capsys):
    out, result = train(capsys, "--steps", 10)
    (line,) = (line for line in out.splitlines() if line.startswith("FLOPs of training"))
    parameters = load_checkpoint("runs/small/model.safetensors")[0].num_parameters()
    tokens = result["tokens_per_second"] * result["seconds"] / 2  # of each side
    assert 0.8 < float(line.split()[-1]) / (6 * parameters * tokens) < 1.3


def test_simple_sentences_are_translated_after_a_short_training(capsys):
    _, result = train(capsys, "--steps", 200, "--peak", 0.01, "--dropout", 0.0)
    assert result["bleu"] > 60 > result["copy_bleu"]
    assert result["perplexity"] < 3


def test_test_pairs_are_never_trained_on():
    recipe = get_recipe("translation")
    data = recipe.data(TranslationOptions(text="pairs.tsv", vocab_size=280))
    trained, tested = ({source for source, _ in part.pairs} for part in (data.train, data.test))
    assert tested
    assert not tested & trained


@pytest.mark.parametrize("model", ["lstm", "gru-attention"])
def test_what_the_transformer_replaced_is_trained_with_the_same_recipe(capsys, model):
    _, result = train(capsys, "--steps", 3, "--model", model)
    trained, _ = load_checkpoint("runs/small/model.safetensors")
    assert isinstance(trained, Seq2Seq)
    assert result["steps"] == 3


def test_option_that_a_recurrent_model_cannot_have_is_refused(capsys):
    refused = "train: --norm is for Transformers, and --model lstm is none\n"
    assert_refused(
        run(capsys, "train", "translation", "--text", "pairs.tsv", "--model", "lstm", "--norm", "pre"), refused
    )


def test_minutes_set_the_number_of_steps_and_a_resumed_run_keeps_it(capsys):
    out, result = train(capsys, "--minutes", 0.02)
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
