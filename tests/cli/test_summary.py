"""`minitransformer summary`: the paper's parameter counts, computed here from its architecture."""

import json

import pytest

from tests.cli.run import assert_refused, run

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
    """The rows of the printed table: {layer: (kind, output, number of parameters)}."""
    lines = out.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("layer "))
    rows = {}
    for line in lines[start + 1 : lines.index("", start)]:
        name, kind, *shape, count = line.partition("  (shared")[0].split()
        rows[name] = kind, " ".join(shape), int(count.replace(",", ""))
    return rows


def test_the_formula_gives_the_known_counts():
    for name, (N, d_model, d_ff, _) in PAPER.items():
        assert parameters(N, d_model, d_ff, 37000) == COUNTS[name]


@pytest.mark.parametrize("name", PAPER)
def test_paper_models_have_the_sizes_and_parameters_of_the_paper(name, capsys):
    N, d_model, d_ff, heads = PAPER[name]
    status, out, err = run(capsys, "summary", name)
    assert (status, err) == (0, "")
    for part in (f"N = {N} layers", f"d_model = {d_model},", f"d_ff = {d_ff},", f"h = {heads} heads", "post-norm"):
        assert part in out.splitlines()[0]
    total = parameters(N, d_model, d_ff, 37000)
    assert out.splitlines()[-1].startswith(f"{total:,} parameters ({total / 1e6:.1f} million)")
    assert sum(count for _, _, count in table(out).values()) == total


def test_the_vocabulary_is_counted_once_at_any_size(capsys):
    _, out, _ = run(capsys, "summary", "tiny", "--vocab-size", 29)
    assert f"{parameters(2, 64, 256, 29):,} parameters" in out
    rows = table(out)
    assert rows["source_embedding.tokens"] == ("Embedding", "(B, S, C)", 29 * 64)
    assert rows["target_embedding.tokens"] == ("Embedding", "(B, T, C)", 0)
    assert rows["output"] == ("OutputProjection", "(B, T, V)", 0)
    assert out.count("(shared with source_embedding)") == 2


def test_json_prints_the_configuration_and_the_count_as_the_last_line(capsys):
    _, out, _ = run(capsys, "summary", "base", "--json")
    result = json.loads(out.splitlines()[-1])
    assert result["parameters"] == COUNTS["base"]
    expected = {"vocab_size": 37000, "d_model": 512, "num_heads": 8, "d_ff": 2048, "num_layers": 6, "norm": "post"}
    assert expected.items() <= result["config"].items()


def test_error_for_an_unknown_configuration_lists_the_known_ones(capsys):
    assert_refused(run(capsys, "summary", "huge"), "summary: configuration must be one of tiny, base, big, got 'huge'")


@pytest.mark.parametrize("size", [0, -3])
def test_an_empty_vocabulary_is_refused(size, capsys):
    assert_refused(run(capsys, "summary", "tiny", "--vocab-size", size), f"vocab_size must be at least 1, got {size}")
