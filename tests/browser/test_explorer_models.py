"""The explorer with a GPT with rotary positions, and with a Transformer with pre-norm and learned positions."""

import numpy as np
import pytest

from minitransformer.decoding import greedy_decode
from minitransformer.explorer import model_data, write_page
from minitransformer.explorer.writing import toy_writing
from minitransformer.models import GPT, Transformer, TransformerConfig
from minitransformer.vocabulary import EOS
from tests.browser.cases import scrambled
from tests.browser.explorer import VIEWS, open_explorer, show, weekly

pytestmark = pytest.mark.exhaustive

WORD = "abca"
MODELS = {"gpt": (GPT, {"positions": "rope"}), "pre": (Transformer, {"norm": "pre", "positions": "learned"})}
STATES = {
    "model": "steps=2",
    "break": "mistake=heads-reshaped&look=skip&cell=decoder1.self.q",
    "compare": "compare=decoder2.self.p",
    "cell": "cell=decoder1.self.ds[0,1,1]",
}


def make_model(name):
    kind, fields = MODELS[name]
    config = TransformerConfig(29, d_model=8, num_heads=2, d_ff=5, num_layers=2, dropout=0.0, max_len=64, **fields)
    return scrambled(2, kind(config, seed=0, dtype=np.float64))


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    writing, found = toy_writing("reverse"), {}
    for name in MODELS:
        found[name] = tmp_path_factory.mktemp("models") / name
        write_page(model_data(make_model(name), writing, writing.encode(WORD), writing.solve(WORD)), found[name])
    return found


@pytest.mark.parametrize("shown", [("gpt", 360), *weekly([("gpt", 1440), ("pre", 360), ("pre", 1440)])], ids=str)
def test_every_view_shows_it(page, folders, shown):
    name, width = shown
    for view in VIEWS:
        open_explorer(page, f"view={view}&padding=1&{STATES.get(view, '')}", folder=folders[name], width=width)
        assert page.overflow() == [], view
        assert "undefined" not in page.text("main")


@pytest.mark.parametrize("name", MODELS)
def test_it_writes_by_itself_what_the_library_writes(page, folders, name):
    model, writing = make_model(name), toy_writing("reverse")
    open_explorer(page, folder=folders[name])
    for word, padding in (("abca", 0), ("z", 2), ("hello", 2)):
        show(page, f"view=model&word={word}&padding={padding}")
        source = [*writing.encode(word), EOS]
        ids = greedy_decode(model, np.array([source]), 16)[0].tolist()
        end = next((n for n, id in enumerate(ids) if id <= EOS), len(ids))
        assert page.script("return App.written()") == ids[:end]


def test_rows_of_a_gpt_are_named_by_what_they_read_and_the_answers_by_what_they_write(page, folders):
    open_explorer(page, "view=cell&cell=decoder1.self.q&padding=1", folder=folders["gpt"])
    labels = page.script(
        "const array = App.machine.get('decoder1.self.q');"
        "return Array.from({length: array.shape[1]}, (_, t) => App.label(array, 1, t));"
    )
    assert labels[:9] == ["a", "b", "c", "a", "eos→a", "a→c", "c→b", "b→a", "a→eos"]
    assert labels[9:] == ["pad→pad", "pad→pad"]
    assert page.script("return Training.rowsOf(App.machine).map(({t}) => t)") == [4, 5, 6, 7, 8]


RINGS = """
const {source, target} = App.ids();
const rings = (mistake) => {
  const context = Mistakes.context(MODEL, {weights: MODEL.weights.trained, source, target, mistake, steps: 5});
  return Mistakes.detectors.filter(({id, run}) => id !== "falls" && run(context).rings).map(({id}) => id);
};
return Object.fromEntries([["", rings(null)], ...Mistakes.list.map((mistake) => [mistake.id, rings(mistake)])]);
"""


@pytest.mark.parametrize("name", ["pre", *weekly(["gpt"])])
def test_detectors_are_silent_for_the_right_model_and_one_rings_for_each_mistake(page, folders, name):
    open_explorer(page, "view=model&word=abba", folder=folders[name])
    rings = page.script(RINGS)
    assert rings.pop("") == []
    assert all(rings.values()), rings
    has = {"residual-forgotten", "memory-through-values"} & rings.keys()
    assert len(has) == (0 if name == "gpt" else 2)  # they are about cross-attention
    assert "leak" in rings["causal-mask-off"]
    if has:
        assert "complex" in rings["residual-forgotten"]
        assert "rows" not in rings["residual-forgotten"]


@pytest.mark.parametrize("name", MODELS)
def test_model_view_frames_each_sub_layer_with_its_norm(page, folders, name):
    open_explorer(page, "view=model", folder=folders[name], width=1440)
    frames = page.script(
        "return [...document.querySelectorAll('.target .sublayer')]"
        ".map(frame => [...frame.querySelectorAll('.box')].map(box => box.dataset.place))"
    )
    pairs = {"gpt": ["self norm1", "ffn norm2"], "pre": ["norm1 self", "norm2 cross", "norm3 ffn"]}[name]
    numbered = [[f"decoder{layer}.{part}" for part in pair.split()] for layer in (1, 2) for pair in pairs]
    assert sorted(map(sorted, frames)) == sorted(map(sorted, numbered))
    alone = page.script("return document.querySelectorAll('.target > [data-place=\"decoder.norm\"]').length")
    assert alone == (name == "pre")
    assert page.script("return document.querySelectorAll('.stack').length") == (1 if name == "gpt" else 2)
