"""`generate` with every kind of model: one prompt, a dialogue, lines from a pipe, and what it refuses."""

import json
import shutil
import sys

import numpy as np
import pytest

from minitransformer.config import Windowed
from minitransformer.data import get_task
from minitransformer.data.parsing import VOCABULARY, ParsingTask, to_ids
from minitransformer.data.tasks import make_batch
from minitransformer.models import BERT, GPT, Transformer, bert_config, gpt_config, named_config
from minitransformer.tokenizers import CharacterTokenizer
from minitransformer.training import load_checkpoint, save_checkpoint
from minitransformer.vocabulary import EOS, PAD
from tests.cli.run import assert_refused, run

TEXT = "to be or not to be, 12 times.\n"
TOKENIZER = CharacterTokenizer.train(TEXT)
SIZES = {"d_model": 8, "num_heads": 2, "d_ff": 6, "num_layers": 1, "max_len": 24}
MODEL = "model.safetensors"
LETTERS = get_task("reverse").symbols


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A folder with a model of each kind, none of them trained."""
    root, tokenizer = tmp_path_factory.mktemp("models"), TOKENIZER.to_dict()
    for name in ("reverse", "addition", "recall"):
        config = named_config("tiny", len(get_task(name).vocabulary))
        save_checkpoint(root / "runs" / name / MODEL, Transformer(config), task=name)
    gpt, bert = (make(TOKENIZER.vocab_size + more, **SIZES) for make, more in ((gpt_config, 0), (bert_config, 1)))
    save_checkpoint(root / "runs/shakespeare" / MODEL, GPT(gpt), task="shakespeare", tokenizer=tokenizer)
    save_checkpoint(root / "runs/masked" / MODEL, BERT(bert), task="masked", tokenizer=tokenizer)
    return root


@pytest.fixture(autouse=True)
def folder(models, tmp_path, monkeypatch):
    """Every test runs in a copy of this folder."""
    shutil.copytree(models, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def perfect(monkeypatch):
    """Models of toy tasks decode the right answer to what they read."""

    def decode(model, source, max_new_tokens):
        assert source[0, -1] == EOS
        tasks = map(get_task, ("reverse", "addition", "recall"))
        task = next(task for task in tasks if len(task.vocabulary) == model.config.vocab_size)
        padded = np.where(source == EOS, PAD, source)
        answer = make_batch(padded, task.solve(padded)).target_out
        assert answer.shape[1] <= max_new_tokens
        return answer

    monkeypatch.setattr("minitransformer.cli.generate.greedy_decode", decode)


def test_a_model_that_parses_draws_the_tree_of_what_one_types(folder, capsys, monkeypatch):
    task = ParsingTask()
    save_checkpoint(folder / "runs/parsing" / MODEL, Transformer(named_config("tiny", len(VOCABULARY))), task="parsing")
    said = {"right": "(Call N (Subscript N K ) )", "WRONG": "(Call N N K )"}
    for verdict, answer in said.items():
        ids = [*to_ids(answer.split()), EOS]
        monkeypatch.setattr("minitransformer.cli.generate.greedy_decode", lambda *given, ids=ids: np.array([ids]))
        status, out, err = run(capsys, "generate", "runs/parsing", "--prompt", "f(x[1])", "--json")
        assert (status, err) == (0, "")
        *lines, result = out.splitlines()
        assert lines == task.show("f(x[1])", answer)
        assert lines[-1] == verdict
        assert json.loads(result) == {"prompt": "f(x[1])", "text": answer}
    of_python = "unexpected EOF" if sys.version_info >= (3, 12) else "EOF"
    refused = f"generate: 'f(' is not Python: {of_python} in multi-line statement\n"
    assert_refused(run(capsys, "generate", "runs/parsing", "--prompt", "f("), refused)


@pytest.mark.parametrize(
    ("task", "prompt", "answer"),
    [("reverse", "hello", "olleh"), ("addition", "12+34", "46"), ("recall", "a3k7c1k", "7")],
)
def test_a_model_of_a_toy_task_answers(task, prompt, answer, perfect, capsys):
    assert run(capsys, "generate", f"runs/{task}", "--prompt", prompt) == (0, f"{answer}\n", "")
    out = run(capsys, "generate", f"runs/{task}/{MODEL}", "--prompt", prompt, "--json").out
    assert json.loads(out.splitlines()[-1]) == {"prompt": prompt, "text": answer}


@pytest.mark.weekly
@pytest.mark.parametrize(
    ("model", "how"),
    [
        ("transformer", ()),
        *((model, ("--factor", 0.3, "--cooldown", 0, "--steps", 300)) for model in ("lstm-attention", "gru-attention")),
        ("gpt", ("--factor", 0.3, "--cooldown", 0, "--steps", 1500)),
    ],
)
def test_a_model_that_was_trained_for_a_minute_reverses_words(model, how, capsys):
    train = ("train", "reverse", "--model", model, *how, "--runs", "long", "--name", "reverse")
    assert run(capsys, *train).status == 0
    for word in ("hello", "attention", "ab"):
        assert run(capsys, "generate", "long/reverse", "--prompt", word).out == f"{word[::-1]}\n"


@pytest.mark.parametrize(("kind", "longest"), [(Transformer, 126), (GPT, 63)])
def test_a_word_longer_than_those_of_training_gets_a_note_and_one_beyond_the_positions_is_refused(
    kind, longest, folder, capsys
):
    save_checkpoint(folder / MODEL, kind(named_config("tiny", len(LETTERS) + 3)), task="reverse")
    status, _, err = run(capsys, "generate", ".", "--prompt", "a" * longest)
    assert (status, err) == (0, "note: the model was trained on at most 12 symbols\n")
    outcome = run(capsys, "generate", ".", "--prompt", "a" * (longest + 1))
    assert_refused(outcome, f"the prompt has {longest + 1} symbols, and this model reads from 1 to {longest}")


def test_masks_are_filled_in_and_the_guesses_are_shown_with_their_probabilities(capsys):
    prompt = r"to [MASK][MASK]\nor not"
    status, out, err = run(capsys, "generate", "runs/masked", "--prompt", prompt, "--top-k", 3, "--json")
    assert (status, err) == (0, "")
    text, first, second, result = out.splitlines()
    result = json.loads(result)
    assert result["text"].startswith("to ")
    assert result["text"].endswith("\nor not")
    assert len(result["text"]) == len("to ??\nor not")
    assert text == result["text"].replace("\n", r"\n")
    for number, line, guesses in zip((1, 2), (first, second), result["masks"], strict=True):
        shown = ", ".join(f"{one['token']!r} {one['probability']:.1%}" for one in guesses)
        assert line == f"[MASK] {number}: {shown}"
        assert guesses[0]["token"] == result["text"][2 + number]
        assert len(guesses) == 3
        assert 1 > guesses[0]["probability"] > guesses[1]["probability"] > guesses[2]["probability"] > 0
    assert run(capsys, "generate", "runs/masked", "--prompt", "[MASK]").out.count("%") == 5


def test_a_language_model_continues_the_prompt(capsys):
    arguments = ("generate", "runs/shakespeare", "--prompt", "12 times", "--length", 20)
    status, out, err = run(capsys, *arguments, "--json")
    assert (status, err) == (0, "")
    text, result = out.rsplit("\n", 2)[0], json.loads(out.splitlines()[-1])
    assert text == "12 times" + result["text"]
    assert len(result["log_probs"]) == 20
    assert 0 < len(result["text"]) <= 20  # special tokens are not printed
    assert all(log_prob <= 0 for log_prob in result["log_probs"])
    assert run(capsys, *arguments, "--json").out == out  # the same seed
    assert run(capsys, *arguments, "--json", "--seed", 1).out != out


def test_attention_names_for_each_head_the_token_that_it_looked_at_most(folder, capsys):
    arguments = ("generate", "runs/shakespeare", "--prompt", TEXT.strip(), "--length", 1, "--attention", "--json")
    status, out, err = run(capsys, *arguments)
    assert (status, err) == (0, "")
    *_, said, first, second, result = out.splitlines()
    text = TEXT.strip() + json.loads(result)["text"]
    assert len(text) == len(TEXT)
    assert said == f"where each head looked to write {text[-1]!r}:"
    model, _ = load_checkpoint(folder / "runs/shakespeare" / MODEL)
    read = TOKENIZER.encode(text)[-25:-1]  # as many as the model reads at once
    (weights,) = model.attention_weights(read[None])
    for head, line in enumerate((first, second)):
        p = weights[0, head, -1]
        assert line.startswith(f"  layer 1, head {head + 1}: {p.max():4.0%} at ")
        assert f"[{TOKENIZER.decode(read[[p.argmax()]])}]" in line.replace(r"\n", "\n")


@pytest.fixture
def draft(folder):
    """A function that saves a model of the same characters as runs/draft, with other sizes."""

    def save(tokenizer=TOKENIZER, **changes):
        sizes = {**SIZES, "d_model": 4, "max_len": 9, **changes}
        model = GPT(gpt_config(tokenizer.vocab_size, **sizes), seed=3)
        save_checkpoint(folder / "runs/draft" / MODEL, model, tokenizer=tokenizer.to_dict())

    save()
    return save


def test_a_draft_changes_no_greedy_text_and_the_last_line_says_how_well_it_guessed(draft, capsys):
    arguments = ("generate", "runs/shakespeare", "--greedy", "--prompt", "12 t", "--length", 40, "--json")
    *alone, result = run(capsys, *arguments).out.splitlines()
    status, out, err = run(capsys, *arguments, "--draft", "runs/draft", "--draft-tokens", 3)
    *lines, empty, said, with_draft = out.splitlines()
    assert (status, err, empty) == (0, "", "")
    assert lines == alone
    result, with_draft = json.loads(result), json.loads(with_draft)
    counts = with_draft.pop("draft")
    assert with_draft["text"] == result["text"]
    assert with_draft["log_probs"] == pytest.approx(result["log_probs"], abs=1e-5)
    assert counts["tokens"] == 40 == counts["passes"] + counts["accepted"]
    rate = counts["accepted"] / counts["judged"]
    assert said == f"draft: {rate:.0%} of the guesses were accepted, {40 / counts['passes']:.2f} tokens per pass"
    sampled = run(capsys, "generate", "runs/shakespeare", "--prompt", "12 t", "--length", 7, "--draft", "runs/draft")
    assert (sampled.status, sampled.out[:4]) == (0, "12 t")


@pytest.mark.parametrize(
    ("changes", "options", "message"),
    [
        ({"tokenizer": CharacterTokenizer.train("abc")}, (), "--draft runs/draft has another tokenizer than runs/shak"),
        ({"attention": Windowed(3)}, (), "new tokens have overwritten old ones"),
        ({"attention": "linear", "positions": "learned"}, (), "it keeps sums, and no single tokens"),
        ({}, ("--draft", "runs/masked"), "--draft runs/masked is a BERT that does not continue text"),
    ],
    ids=("tokenizer", "windowed", "linear", "BERT"),
)
def test_a_draft_that_cannot_guess_is_refused_with_the_reason(changes, options, message, draft, capsys):
    draft(**changes)
    words = ("generate", "runs/shakespeare", "--prompt", "1", "--draft", "runs/draft", *options)
    assert_refused(run(capsys, *words), message)


def test_lines_from_a_pipe_get_one_answer_each(perfect, typed, capsys):
    typed("hello", "", "abc")
    assert run(capsys, "generate", "runs/reverse") == (0, "olleh\n\ncba\n", "")
    typed("to [MASK][MASK]", "be")
    status, out, err = run(capsys, "generate", "runs/masked", "--json")
    assert (status, err) == (
        2,
        "minitransformer generate: the prompt has no mask: write [MASK] for each token that is to be filled in\n",
    )
    filled, empty, results = out.splitlines()
    assert (len(filled), empty) == (5, "")
    assert [set(result) for result in json.loads(results)] == [{"prompt", "text", "masks"}, {"prompt", "error"}]


def test_ctrl_c_ends_a_dialogue_quietly_and_is_an_interruption_elsewhere(typed, capsys, monkeypatch):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    typed("abc", terminal=True)
    monkeypatch.setattr("builtins.input", interrupted)
    status, out, err = run(capsys, "generate", "runs/reverse")
    assert (status, out.count("\n"), err) == (0, 2, "")
    typed("abc")
    monkeypatch.setattr("minitransformer.cli.generate.greedy_decode", interrupted)
    assert run(capsys, "generate", "runs/reverse") == (130, "", "minitransformer generate: stopped\n")


@pytest.mark.parametrize("kind", ["reverse", "masked"])
def test_options_of_language_models_are_refused_by_name_with_other_models(kind, capsys):
    guesses = ["--top-k"] if kind == "reverse" else []  # a masked model has it, too
    valued = ("--length", "--temperature", "--top-p", "--no-repeat", "--draft", "--draft-tokens", *guesses)
    for words in (*((option, 1) for option in valued), ("--greedy",), ("--attention",)):
        outcome = run(capsys, "generate", f"runs/{kind}", "--prompt", "x", *words)
        assert_refused(outcome, f"{words[0]} is for language models, and runs/{kind} is a model")


def test_a_checkpoint_of_an_unfinished_run_is_used_with_a_note(copy_of, capsys):
    stopped = copy_of("stopped")
    note = "note: this run is not finished; the model is that of step-00000003.safetensors\n"
    for path in (stopped, stopped / "checkpoints", stopped / "checkpoints/step-00000003.safetensors"):
        status, out, err = run(capsys, "generate", path, "--prompt", "abc")
        assert (status, err) == (0, note)
        assert out


def test_a_finished_model_is_preferred_to_checkpoints(folder, capsys, perfect):
    (folder / "runs/reverse/checkpoints").mkdir()
    (folder / "runs/reverse/checkpoints/step-00000004.safetensors").write_bytes(b"")
    assert run(capsys, "generate", "runs/reverse", "--prompt", "abc") == (0, "cba\n", "")


def test_a_model_of_classes_is_refused(folder, capsys):
    model = BERT(bert_config(11, **SIZES), num_classes=3)
    save_checkpoint(folder / "classes", model, tokenizer=TOKENIZER.to_dict())
    refused = run(capsys, "generate", "classes", "--prompt", "x")
    assert_refused(refused, "cannot fill in masks: `minitransformer train masked`")
