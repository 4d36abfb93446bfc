"""What README and docs/ print runs as it stands, and they name commands that exist."""

import ast
import contextlib
import inspect
import io
import re
from pathlib import Path

import minitransformer as mt
from minitransformer.cli import COMMANDS
from minitransformer.interop import load_adapters
from minitransformer.training import step

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")


def code_of(page, beginning):
    """The one block of Python of a page that begins with these words."""
    (code,) = re.findall(rf"```python\n({re.escape(beginning)}.*?)```", page, flags=re.DOTALL)
    return code


def whiteboard(source):
    """A function without its docstring and annotations, as a syntax tree in words."""
    (function,) = ast.parse(source).body
    if ast.get_docstring(function) is not None:
        del function.body[0]
    function.returns = None
    for argument in function.args.args:
        argument.annotation = None
    return ast.dump(function)


def test_readme_is_short():
    assert len(README.splitlines()) <= 120


def test_readme_and_help_print_the_training_step_as_it_is():
    own = whiteboard(inspect.getsource(step.training_step))
    assert whiteboard(code_of(README, "def training_step")) == own
    (shown,) = re.findall(r"^    (def training_step.*?)\n\n", mt.__doc__, flags=re.MULTILINE | re.DOTALL)
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
    saved = names["model"].state_dict()
    exec(
        compile(code_of(page, "import minitransformer as mt\nfrom minitransformer.interop"), "library.md", "exec"),
        names,
    )
    tuned = names["model"].state_dict()
    assert tuned.keys() == saved.keys()
    changed = {name for name in tuned if not (tuned[name] == saved[name]).all()}
    assert {"blocks.layers.1.feed_forward.norm.gamma", "blocks.layers.0.self_attention.sublayer.qkv.W"} <= changed
    assert not {"blocks.layers.0.feed_forward.norm.gamma", "embedding.tokens.E", "blocks.norm.gamma"} & changed
    for name, adapter in load_adapters(names["model"], "adapters").items():
        assert adapter.B.data.any(), name
    assert sum(path.stat().st_size for path in (tmp_path / "adapters").iterdir()) < 40_000


def test_the_page_of_commands_names_every_command_and_no_other():
    assert set(re.findall(r"^\| `minitransformer ([a-z]+)", (ROOT / "docs" / "commands.md").read_text("utf-8"),
                          flags=re.MULTILINE)) == set(COMMANDS)  # fmt: skip


def test_readme_and_pages_name_only_commands_that_exist():
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        named = set(re.findall(r"(?:`|^|bin/)minitransformer ([a-z]+)", page.read_text("utf-8"), flags=re.MULTILINE))
        assert named <= set(COMMANDS), page.name
