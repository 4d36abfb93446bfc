"""data.js: it has every number exactly, under the names of the lessons, and the page's own is up to date."""

import numpy as np
import pytest

from minitransformer.config import Experts, Rope
from minitransformer.explorer import example_data, example_writing, model_data, page_folder, write_data
from minitransformer.explorer.export import LARGEST, data_text
from minitransformer.explorer.writing import ids_writing
from minitransformer.models import BERT, GPT, Transformer, TransformerConfig, bert_config, gpt_config
from tests.explorer.reading import assert_up_to_date, read_model, state_of

SIZES = {"d_model": 12, "num_heads": 3, "d_ff": 10, "max_len": 40}
PAPER = {"kind": "transformer", "norm": "post", "positions": "sinusoidal"}
V = 11
SOURCE, TARGET = [5, 9, 10], [10, 9]


def make_model(dtype=np.float32, **fields):
    return Transformer(TransformerConfig(V, **{**SIZES, "num_layers": 2, **fields}), seed=3, dtype=dtype)


def make_data(model, source=SOURCE, target=TARGET, **options):
    return model_data(model, ids_writing(V), source, target, **options)


def test_data_js_of_the_page_is_what_the_library_writes():
    committed = read_model((page_folder() / "data.js").read_text("utf-8"))
    assert_up_to_date(committed, read_model(data_text(example_data())))


@pytest.mark.parametrize(("dtype", "layers"), [(np.float32, 2), (np.float64, 1)])
def test_a_model_with_the_exported_weights_has_the_same_logits_in_float64(dtype, layers, tmp_path):
    model = make_model(dtype, num_layers=layers)
    rng = np.random.default_rng(0)
    for parameter in model.parameters():
        parameter.data[...] *= 10.0 ** rng.uniform(-9, 1, parameter.data.shape)
    write_data(make_data(model), tmp_path / "data.js")
    read = read_model((tmp_path / "data.js").read_text("utf-8"))
    exact = {name: array.astype(np.float64) for name, array in model.state_dict().items()}
    exported = state_of(read["weights"]["trained"], layers)
    assert exported.keys() == exact.keys()
    assert all(np.array_equal(exported[name], exact[name]) for name in exact)
    wide = Transformer(model.config, seed=None, dtype=np.float64)
    logits = []
    for state in (exact, exported):
        wide.load_state_dict(state)
        logits.append(wide(np.array([SOURCE]), np.array([[1, *TARGET]])))
    assert np.array_equal(*logits)


def test_a_float32_number_that_its_shortest_digits_would_miss_is_written_with_all_of_them():
    (number,) = np.array([0x15AE43FD], dtype=np.uint32).view(np.float32)
    assert np.float32(float(str(number))) != number  # rounded twice: to float64, and then the wrong way
    model = make_model()
    model.output.E.data[4, 2] = number
    assert read_model(data_text(make_data(model)))["weights"]["trained"]["E"][4, 2] == number


def test_untrained_weights_are_the_initial_ones_of_a_seed_in_four_decimals():
    read = read_model(data_text(make_data(make_model(), seed=7)))
    initial = Transformer(make_model().config, seed=7).state_dict()
    for name, array in state_of(read["weights"]["untrained"], layers=2).items():
        assert np.abs(array - initial[name]).max() <= 0.5001e-4
        assert np.abs(array - array.round(4)).max() < 1e-7


def test_lines_are_short_and_say_what_the_page_is_about():
    data = make_data(make_model())
    text = data_text(data)
    assert max(map(len, text.splitlines())) <= 200
    read = read_model(text)
    assert read["title"] == "5 9 10 → 10 9"
    assert (read["task"], read["example"]) == (None, False)
    assert read["max_length"] == 16
    assert read["sizes"] == {"C": 12, "H": 3, "D": 4, "F": 10, "V": 11, "layers": 2} | PAPER
    assert max(len(line) for line in data_text(example_data()).splitlines()) <= 200


def test_without_a_target_the_model_writes_one():
    model = make_model(max_len=6)
    state = model.state_dict()
    data = make_data(model, target=None)
    assert len(data["target"]) <= data["max_length"] == 5
    assert set(data["target"]) <= set(range(3, V))
    ids = [1]
    while ids[-1] != 2 and len(ids) <= 6:
        ids.append(int(model(np.array([SOURCE]), np.array([ids]))[0, -1].argmax()))
    assert data["target"] == [id for id in ids if id > 2][:5]
    assert all(np.array_equal(array, state[name]) for name, array in model.state_dict().items())


def test_running_example_takes_words_of_its_letters():
    data = example_data("top")
    assert (data["source"], data["target"], data["example"]) == ([6, 3, 4], [4, 3, 6], True)
    assert example_data("top", "so")["target"] == [5, 3]
    assert example_data("stop", "pots")["target"] == example_data()["target"]
    for word, message in (("stoP", "letters o, p, s, t, got 'P'"), ("", "has 0 tokens"), ("o" * 9, "from 1 to 8")):
        with pytest.raises(ValueError, match=message):
            example_data(word)
    with pytest.raises(ValueError, match="the target has 9 tokens"):
        example_data("stop", "stopstops")
    assert example_writing().example == "stop"


@pytest.mark.parametrize(
    ("fields", "shown"),
    [
        ({"attention": "tiled"}, "attention = full"),
        ({"final_norm": True}, "final_norm = False"),
        ({"norm": "pre", "final_norm": False}, "final_norm = True"),
        ({"positions": "alibi"}, "positions = sinusoidal or learned or rope or none"),
        ({"normalization": "rms"}, "normalization = layer"),
        ({"activation": "gelu"}, "activation = relu"),
        ({"bias": False}, "bias = True"),
        ({"tie_embeddings": False}, "tie_embeddings = True"),
        ({"tie_embeddings": "inputs"}, "tie_embeddings = True"),
        ({"scale_embeddings": False}, "scale_embeddings = True"),
        ({"scale_scores": False}, "scale_scores = True"),
        ({"scale_output": True}, "scale_output = False"),
        ({"start": 0}, "start = 1"),
        ({"padding": None}, "padding = 0"),
        ({"num_kv_heads": 1}, "num_kv_heads = 3"),
        ({"d_k": 2}, "d_k = None"),
        ({"d_v": 2}, "d_v = None"),
        ({"norm": "sandwich"}, "norm = post or pre"),
        ({"qk_norm": True}, "qk_norm = False"),
        ({"qkv_bias": False}, "qkv_bias = None"),
        ({"positions": Rope(9.0)}, "rope_base = 10000.0"),
        ({"positions": Rope(factor=2.0)}, "rope_factor = 1.0"),
        ({"share_layers": True}, "share_layers = False"),
        ({"experts": Experts(2)}, "num_experts = None"),
    ],
)
def test_a_model_of_another_shape_is_refused(fields, shown):
    with pytest.raises(ValueError, match=f"^the explorer shows models with {shown}, and this model has "):
        make_data(make_model(**fields))


@pytest.mark.parametrize("kind", [Transformer, GPT])
@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rope", "none"])
def test_shape_of_a_model_and_learned_positions_are_exported(kind, positions):
    model = kind(TransformerConfig(V, **SIZES, num_layers=2, norm="pre", positions=positions))
    data = make_data(model)
    assert data["max_length"] == 16
    assert data["sizes"]["kind"] == {Transformer: "transformer", GPT: "gpt"}[kind]
    assert (data["sizes"]["norm"], data["sizes"]["positions"]) == ("pre", positions)
    rows = 20 if kind is Transformer else 40  # a GPT reads both sequences as one
    weights = data["weights"]["trained"]
    stacks = {"encoder": "source", "decoder": "target"} if kind is Transformer else {"decoder": "target"}
    assert {name for name in weights if name.endswith("norm.gamma")} == {f"{stack}.norm.gamma" for stack in stacks}
    learned = {f"{stack}.P" for stack in stacks.values()} if positions == "learned" else set()
    assert {name for name in weights if name.endswith(".P")} == learned
    assert all(len(weights[name]) == rows for name in learned)


def test_models_of_another_kind_and_too_large_ones_are_refused():
    with pytest.raises(ValueError, match="this model is a BERT"):
        make_data(BERT(bert_config(V, **SIZES)))
    with pytest.raises(ValueError, match="activation = relu, and this model has activation = gelu_tanh"):
        make_data(GPT(gpt_config(V, **SIZES)))
    large = make_model(d_ff=10_000)
    with pytest.raises(ValueError, match=f"at most {LARGEST:,} weights, and this model has {large.num_parameters():,}"):
        make_data(large)


def test_weights_that_are_not_finite_are_refused():
    for value in (np.nan, np.inf):
        model = make_model()
        model.output.E.data[3, 1] = value
        with pytest.raises(ValueError, match="not finite"):
            make_data(model)


def test_too_many_tokens_are_refused():
    for source, target, message in (
        ([], [3], "the source has 0 tokens, and the explorer shows from 1 to 16"),
        ([3] * 17, None, "the source has 17 tokens, and the explorer shows from 1 to 16"),
        ([3], [3] * 17, "the target has 17 tokens, and the explorer shows from 0 to 16"),
    ):
        with pytest.raises(ValueError, match=message):
            make_data(make_model(), source, target)
    assert make_data(make_model(), [3] * 16, [])["target"] == []
    assert len(make_data(make_model(), [3], [4] * 16)["target"]) == 16


def test_names_for_another_number_of_tokens_are_refused():
    with pytest.raises(ValueError, match="names of 12 tokens, and the model has 11"):
        model_data(make_model(), ids_writing(12), SOURCE, TARGET)
