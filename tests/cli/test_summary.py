"""`minitransformer summary`: the paper's parameter counts, computed here from its architecture."""

import json
import re
from pathlib import Path

import pytest

from minitransformer.config import flat_fields
from minitransformer.models import BERT, Transformer, bert_config, named_config
from minitransformer.recipes import RECIPES
from minitransformer.training import save_checkpoint
from tests.cli.run import assert_refused, run
from tests.interop.given import GPT2_FILE, make_state, save

# paper, table 3: N, d_model, d_ff, h
PAPER = {"base": (6, 512, 2048, 8), "big": (6, 1024, 4096, 16)}
COUNTS = {"base": 63_082_496, "big": 214_245_376}


def parameters(N, d_model, d_ff, V):
    """The number of parameters of the architecture in paper section 3, with the shared embedding of section 3.4.

    All projections have biases, as in the authors' code. The heads' matrices together are d_model x d_model.
    """
    projection = d_model * d_model + d_model
    attention = 4 * projection  # W^Q, W^K, W^V and W^O
    network = (d_model * d_ff + d_ff) + (d_ff * d_model + d_model)
    norm = 2 * d_model  # scale and shift, one after each sub-layer
    encoder_layer = (attention + norm) + (network + norm)
    decoder_layer = 2 * (attention + norm) + (network + norm)
    return V * d_model + N * (encoder_layer + decoder_layer)


def table(out):
    """The rows of the printed table: {layer: (kind, output, number of parameters, with a star if shared)}."""
    lines = out.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("layer "))
    rows, block = {}, ""
    for line in lines[start + 1 : lines.index("", start)]:
        if line.startswith("* "):
            continue
        name, *columns = line.split()
        if not columns:
            block = name
            continue
        kind, *shape, count = columns
        rows[f"{block}.{name}" if line.startswith(" ") else name] = kind, " ".join(shape), count.replace(",", "")
    return rows


def counts(rows):
    """The numbers of parameters of all rows."""
    return [int(count.rstrip("*")) for _, _, count in rows.values()]


def test_the_formula_gives_the_known_counts():
    for name, (N, d_model, d_ff, _) in PAPER.items():
        assert parameters(N, d_model, d_ff, 37000) == COUNTS[name]


@pytest.mark.parametrize("name", ["base", pytest.param("big", marks=pytest.mark.exhaustive)])
def test_paper_models_have_the_sizes_and_parameters_of_the_paper_and_rows_with_their_names(name, capsys):
    N, d_model, d_ff, heads = PAPER[name]
    status, out, err = run(capsys, "summary", name)
    assert (status, err) == (0, "")
    for part in (f"N = {N} layers", f"d_model = {d_model},", f"d_ff = {d_ff},", f"h = {heads} heads", "post-norm"):
        assert part in out.partition("\n\n")[0].replace("\n", " ")
    total = parameters(N, d_model, d_ff, 37000)
    assert out.splitlines()[-1].startswith(f"{total:,} parameters ({total / 1e6:.1f} million)")
    layers = table(out)
    assert sum(counts(layers)) == total
    assert [line for line in out.splitlines() if len(line) > 80] == []
    assert f"decoder.layers.{N - 1}.cross_attention.sublayer" in layers
    model = Transformer(named_config("tiny", 29, num_layers=N), seed=None)
    owners = {path.rpartition(".")[0] for path, _ in model.named_parameters()}
    for owner in owners:
        assert any(owner == layer or owner.startswith(f"{layer}.") for layer in layers), owner


def test_the_tiny_model_is_the_one_that_training_builds_for_letters(capsys):
    for task in ("copy", "reverse", "sort"):
        recipe = RECIPES[task]
        model_class, config = recipe.model(recipe.defaults, recipe.data(recipe.defaults))
        model = model_class(config, seed=None)
        _, out, _ = run(capsys, "summary", "tiny", "--json")
        printed = json.loads(out.splitlines()[-1])
        assert printed["parameters"] == model.num_parameters()
        assert printed["config"] == flat_fields(config)


def test_recomputed_layers_keep_their_inputs_alone(capsys):
    outcomes = (run(capsys, "summary", "base", "--activations", *more, "--json") for more in ((), ("--recompute",)))
    kept, recomputed = (json.loads(outcome.out.splitlines()[-1]) for outcome in outcomes)
    assert recomputed["bytes"] < kept["bytes"] / 15
    assert {row["count"] for row in recomputed["kept"] if ".layers.*." in row["name"]} == {1, 6}


@pytest.mark.parametrize("arguments", [("tiny",), ("big", "--activations"), ("--help",)])
def test_no_line_is_wider_than_80_columns(arguments, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    _, out, _ = run(capsys, "summary", *arguments)
    assert len(out.splitlines()) > 20
    assert [line for line in out.splitlines() if len(line) > 80] == []


def test_a_model_file_is_shown_with_its_options_and_what_was_saved_with_it(tmp_path, capsys):
    model = BERT(bert_config(11, d_model=12, num_heads=3, d_ff=7, num_layers=2, max_len=9), num_classes=5)
    save_checkpoint(tmp_path / "mine.safetensors", model, task="mine", steps=40)
    status, out, _ = run(capsys, "summary", tmp_path / "mine.safetensors", "--json")
    assert status == 0
    head = " ".join(out.partition("\n\n")[0].split())
    for part in ("mine.safetensors: BERT, task=mine, steps=40,", "num_heads=3,", "num_classes=5"):
        assert part in head
    rows = table(out)
    assert rows["head"] == ("ClassifierHead", "(B, K)", str(12 * 12 + 12 + 12 * 5 + 5))
    result = json.loads(out.splitlines()[-1])
    assert result == {"config": flat_fields(model.config), "parameters": sum(counts(rows))}


def test_what_differs_from_the_paper_comes_first_and_the_rest_on_request(tmp_path, capsys):
    config = bert_config(11, d_model=12, num_heads=3, d_ff=7, num_layers=2, max_len=9)
    save_checkpoint(tmp_path / "mine.safetensors", BERT(config), task="mine")
    short, whole = (run(capsys, "summary", tmp_path / "mine.safetensors", *more).out for more in ((), ("--options",)))
    short, whole = (" ".join(out.partition("\n\n")[0].split()) for out in (short, whole))
    differs = re.search(
        r"unlike the base model of the paper: (.*) as in the paper: the rest, which --options lists", short
    )
    assert {"d_model=12", "num_heads=3", "activation=gelu", "vocab_size=11"} <= set(differs[1].split(", "))
    usual = whole.partition("as in the paper: ")[2].split(", ")
    assert {"norm=post", "normalization=layer"} <= set(usual)
    fields = {f"{name}={value}" for name, value in flat_fields(config).items() if value is not None}
    assert {*differs[1].split(", "), *usual} == fields


def test_a_model_that_is_not_there_is_refused_with_the_runs_that_are(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    save_checkpoint(Path("runs/mine/model.safetensors"), Transformer(named_config("tiny", 29)))
    assert_refused(
        run(capsys, "summary", "runs/other"), "there is no model 'runs/other'", "a run (runs/mine), a", "tiny"
    )
    assert_refused(run(capsys, "summary", "bse"), "there is no model 'bse'; did you mean base")


def test_in_a_narrow_terminal_each_row_has_two_lines_and_no_line_is_cut(capsys, monkeypatch):
    for arguments in (("tiny",), ("base", "--activations")):
        monkeypatch.setenv("COLUMNS", "60")
        narrow = run(capsys, "summary", *arguments).out
        monkeypatch.setenv("COLUMNS", "100")
        wide = run(capsys, "summary", *arguments).out
        assert [line for line in narrow.splitlines()[3:] if len(line) > 60] == []
        assert narrow.split() == wide.split()
        assert narrow.count("\n") > wide.count("\n") + 20


def test_a_folder_of_hugging_face_is_shown(tmp_path, capsys):
    save(tmp_path, make_state("gpt2"), GPT2_FILE)
    out = run(capsys, "summary", tmp_path).out
    assert table(out)["embedding.tokens"] == ("Embedding", "(B, T, C)", str(11 * 12))
