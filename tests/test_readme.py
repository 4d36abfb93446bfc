"""What README and docs/ print runs as it stands, and they name commands that exist."""

import ast
import contextlib
import inspect
import io
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

import minitransformer as mt
from minitransformer import functional as F
from minitransformer.cli import COMMANDS, parse
from minitransformer.interop import load_adapters
from minitransformer.layers import FeedForward
from minitransformer.training import step
from tests.interop.given import GPT2_FILE, make_state, save

ROOT = Path(__file__).parent.parent
PAGES = (ROOT / "README.md", ROOT / "lessons" / "README.md", *sorted((ROOT / "docs").glob("*.md")))
BLOCKS = {  # on each page; run here, in test_walk.py, test_classify.py, test_embed.py, test_recording.py, test_blank.py
    **{
        "README.md": 2,
        "attention.md": 1,
        "blank-file.md": 3,
        "exercises.md": 2,
        "library.md": 4,
        "models.md": 1,
        "own-layers.md": 1,
        "preferences.md": 2,
    },
    **{"fine-tuning.md": 4, "inside.md": 1, "processes.md": 1, "sharpness.md": 1, "translation.md": 1},
    "pytorch.md": 15,  # in tests/oracle
}
README = (ROOT / "README.md").read_text("utf-8")


def code_of(page, beginning):
    """The one block of Python of a page that begins with these words."""
    (code,) = re.findall(rf"```python\n({re.escape(beginning)}.*?)```", page, flags=re.DOTALL)
    return code


def block_of(page, beginning):
    """The block of a page in docs/ that begins with these words, compiled."""
    return compile(code_of((ROOT / "docs" / page).read_text("utf-8"), beginning), page, "exec")


def whiteboard(source):
    """The functions without their docstrings and annotations, as syntax trees in words."""
    functions = ast.parse(source).body
    for function in functions:
        if ast.get_docstring(function) is not None:
            del function.body[0]
        function.returns, function.decorator_list = None, []
        for argument in function.args.args:
            argument.annotation = None
    return [ast.dump(function) for function in functions]


def test_readme_is_short():
    assert len(README.splitlines()) <= 120


def test_readme_and_help_print_the_training_step_as_it_is():
    own = whiteboard(inspect.getsource(step.training_step) + inspect.getsource(step.step_with))
    code = code_of(README, "from minitransformer.training.step import")
    exec(code, {})  # the defaults of the arguments are among what it imports
    assert whiteboard(code[code.index("def ") :]) == own[1:]
    (shown,) = re.findall(r"^    (def training_step.*?)\n\n(?=\w)", mt.__doc__, flags=re.MULTILINE | re.DOTALL)
    assert whiteboard(shown.replace("\n    ", "\n")) == own


def test_the_layer_in_the_readme_passes_as_it_says():
    """Errors that are rounding alone may differ from machine to machine."""
    code = code_of(README, "import numpy as np\nimport minitransformer as mt\n\n\nclass ")
    (claimed,) = re.findall(r"```text\n(Swish: .*?)```", README, flags=re.DOTALL)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "README.md", "exec"), {})
    rounding = re.compile(r"\d\.\de-1\d")
    assert rounding.sub("rounding", printed.getvalue()) == rounding.sub("rounding", claimed)
    right, wrong = "return dy * s + self.beta.data * slope", "return dy * s"
    assert right in code
    with contextlib.redirect_stdout(printed):
        exec(compile(code.replace(right, wrong), "README.md", "exec"), {})
    (verdict,) = re.findall(r"`(WRONG at .*?)`", README)
    assert verdict in printed.getvalue()


@pytest.mark.exhaustive
def test_the_script_that_reads_roman_numerals_is_short_and_learns(capsys):
    code = code_of((ROOT / "docs" / "translation.md").read_text("utf-8"), "import itertools\n")
    assert len([line for line in code.splitlines() if line]) <= 12
    assert code.count("steps=800") == 2
    names = {}
    exec(compile(code.replace("steps=800", "steps=3"), "translation.md", "exec"), names)
    assert re.match(r"\d+ of 107 are right: LXXXIII is ", capsys.readouterr().out)
    assert ("MCMLXXXVII", "1987") in names["task"].train.pairs


def test_the_library_example_trains_saves_loads_and_goes_on_for_400_tokens(tmp_path, monkeypatch, capsys):
    page = (ROOT / "docs" / "library.md").read_text("utf-8")
    example = code_of(page, "import minitransformer as mt\n\ntext =")
    assert len(example.split("\n\n", 1)[1].replace("\n\n", "\n").splitlines()) <= 15
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(compile(example.replace("steps=1000", "steps=3").replace("1024", "300"), "library.md", "exec"), names)
    assert len(names["tokenizer"].encode(capsys.readouterr().out)) > 200  # 400 tokens, of which some join
    assert (tmp_path / "model.safetensors").exists()
    exec(block_of("processes.md", "from minitransformer.training import Strategy"), names)
    saved = names["model"].state_dict()
    assert not np.array_equal(saved["blocks.norm.gamma"], mt.GPT(names["model"].config).blocks.norm.gamma.data)
    exec(block_of("fine-tuning.md", "import minitransformer as mt\nfrom minitransformer.interop"), names)
    tuned = names["model"].state_dict()
    assert tuned.keys() == saved.keys()
    changed = {name for name in tuned if not (tuned[name] == saved[name]).all()}
    assert {"blocks.layers.1.feed_forward.norm.gamma", "blocks.layers.0.self_attention.sublayer.qkv.W"} <= changed
    assert not {"blocks.layers.0.feed_forward.norm.gamma", "embedding.tokens.E", "blocks.norm.gamma"} & changed
    for name, adapter in load_adapters(names["model"], "adapters").items():
        assert adapter.B.data.any(), name
    assert sum(path.stat().st_size for path in (tmp_path / "adapters").iterdir()) < 40_000


def test_layers_of_ones_own_in_a_model_are_trained_saved_loaded_and_resumed(tmp_path, monkeypatch, capsys):
    code = code_of((ROOT / "docs" / "own-layers.md").read_text("utf-8"), "import numpy as np")
    for steps in ("100", "200", "300"):
        assert steps in code
        code = code.replace(f"={steps}", f"={steps[0]}")
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "own"}
    exec(compile(code, "own-layers.md", "exec"), names)
    assert "sublayer: SwishNetwork beta (256,)" in capsys.readouterr().out
    model, rng, x = names["again"], np.random.default_rng(1), np.random.default_rng(0).standard_normal((2, 5, 6))
    assert all(
        np.array_equal(a, b)
        for a, b in zip(model.state_dict().values(), names["saved"].model.state_dict().values(), strict=True)
    )
    straight, settings = names["make_model"](), mt.TrainingSettings(steps=3, batch_size=8)
    mt.train(straight, names["data"], settings=settings)
    assert np.array_equal(straight.output.E.data, model.output.E.data)
    for layer in (names["SwishNetwork"](6, 9, rng), names["MeanAttention"](6, rng), names["TanhNorm"](6)):
        for parameter in layer.parameters():
            parameter.data = parameter.data.astype(float)
        assert mt.check_layer(layer, x).passed, layer


def test_the_blocks_about_layers_do_what_they_say():
    x, dy = np.random.default_rng(0).standard_normal((2, 2, 3, 5), dtype=np.float32)
    names = {"layer": FeedForward(5, 7, rng=np.random.default_rng(1)), "x": x, "dy": dy, "np": np}
    exec(block_of("library.md", "y, cache = layer.forward(x)"), names)
    np.testing.assert_array_equal(names["y"], names["layer"].forward(x)[0])
    assert names["dx"].any()
    own = {"rng": np.random.default_rng(1), "MyLayer": lambda C: FeedForward(C, 7)}
    exec(block_of("library.md", "from minitransformer.layers import EncoderLayer"), own)
    x64 = np.ones((1, 3, 64), np.float32)
    y, cache = own["layer"].forward(x64, rng=own["rng"])
    assert own["layer"].backward(y, cache).shape == x64.shape
    exec(block_of("library.md", "def softmax(s):"), names)
    p, cache = names["softmax"](x)
    np.testing.assert_allclose(p, F.softmax(x)[0], rtol=1e-5)
    np.testing.assert_allclose(names["softmax_backward"](dy, cache), F.softmax_backward(dy, cache), atol=1e-6)


def test_the_blocks_about_models_and_curvature_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(
        compile(code_of((ROOT / "docs" / "attention.md").read_text("utf-8"), "from mini"), "attention.md", "exec"),
        names,
    )
    assert names["model"].config.attention.window == 64
    (tmp_path / "folder/of/gpt2").mkdir(parents=True)
    save(tmp_path / "folder/of/gpt2", make_state("gpt2"), GPT2_FILE)
    exec(block_of("models.md", "from minitransformer"), names)
    assert isinstance(names["model"], mt.GPT)
    theta, v = np.random.default_rng(0).standard_normal((2, 6))
    names = {"theta": theta, "v": v, "forward": lambda x: x, "backward": lambda x: x**3}  # of sum x^4 / 4
    exec(
        compile(code_of((ROOT / "docs" / "sharpness.md").read_text("utf-8"), "h = 1e-30"), "sharpness.md", "exec"),
        names,
    )
    np.testing.assert_allclose(names["Hv"], 3 * theta**2 * v, rtol=1e-14)


def test_the_block_about_interventions_runs():
    model = mt.Transformer(mt.named_config("tiny", 9))
    names = {"model": model, "vector": np.ones(64), "weights": np.full(4, 0.25)}
    exec(block_of("inside.md", "from minitransformer.inspection"), names)
    assert float(names["altered"].scale.data) == 1.0


def test_the_page_of_the_library_lists_every_public_name():
    page = (ROOT / "docs" / "library.md").read_text("utf-8")
    section = page.partition("## What is public")[2].partition("So are the names")[0]
    named = re.findall(r"`(\w+)`", section)
    assert sorted(named) == sorted(mt.__all__)


def test_every_block_of_python_is_one_that_a_test_runs():
    found = {page.name: page.read_text("utf-8").count("```python\n") for page in PAGES if page.parent.name != "lessons"}
    assert {name: count for name, count in found.items() if count} == BLOCKS


def test_every_command_line_of_a_block_is_understood():
    lines = [line for page in PAGES for block in re.findall(r"^```sh\n(.*?)^```", page.read_text("utf-8"), re.M | re.S)
             for line in re.split(r"\n|&&", block)]  # fmt: skip
    commands = [line.split("minitransformer ", 1)[1] for line in lines if re.search(r"(^|[ /])minitransformer ", line)]
    assert len(commands) > 15
    for command in commands:
        parse(shlex.split(command, comments=True))


def test_the_page_of_commands_names_every_command_and_no_other():
    assert set(re.findall(r"^\| `minitransformer ([a-z]+)", (ROOT / "docs" / "commands.md").read_text("utf-8"),
                          flags=re.MULTILINE)) == set(COMMANDS)  # fmt: skip


def test_readme_and_pages_name_only_commands_that_exist():
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        named = set(re.findall(r"(?:`|^|bin/)minitransformer ([a-z]+)", page.read_text("utf-8"), flags=re.MULTILINE))
        assert named <= set(COMMANDS), page.name
