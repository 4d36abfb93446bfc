"""The README's library example runs as it stands, only for fewer steps, and its tables name commands that exist."""

import re
from pathlib import Path

from minitransformer.cli import COMMANDS

README = Path(__file__).parent.parent / "README.md"


def test_the_library_example_trains_saves_loads_and_generates(tmp_path, monkeypatch, capsys):
    text = README.read_text("utf-8")
    (example,) = re.findall(
        r"```python\n(from pathlib import Path\n\nimport minitransformer as mt\n.*?)```", text, flags=re.DOTALL
    )
    assert "steps=300" in example
    monkeypatch.chdir(tmp_path)
    (tmp_path / "README.md").write_text(text, "utf-8")
    exec(compile(example.replace("steps=300", "steps=3"), "README.md", "exec"), {})
    first, said = capsys.readouterr().out.split("\n", 1)
    assert re.fullmatch(r"loss \d\.\d\d -> \d\.\d\d", first)
    assert len(said.rstrip("\n")) == 40
    assert (tmp_path / "model.safetensors").exists()


def test_the_readme_names_every_command_and_no_other():
    named = set(re.findall(r"`minitransformer ([a-z]+)", README.read_text("utf-8")))
    others = {"check", "hint", "solution", "progress"}  # named without the program's name
    assert named | others == set(COMMANDS)
