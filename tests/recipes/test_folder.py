"""The name of a run's folder says what it learns, and different runs have different names."""

import dataclasses

import pytest

from minitransformer.recipes import RECIPES
from minitransformer.recipes.folder import RunFolder, run_name


def name_of(task, **changes):
    defaults = RECIPES[task].defaults
    return run_name(task, dataclasses.replace(defaults, **changes), defaults)


@pytest.mark.parametrize(
    ("task", "changes", "name"),
    [
        ("reverse", {}, "reverse"),
        ("reverse", {"seed": 3}, "reverse-seed-3"),
        ("reverse", {"steps": 500, "model": "gpt"}, "reverse-model-gpt-steps-500"),
        ("reverse", {"mine": True}, "reverse-mine"),
        ("addition", {"steps": 2000, "factor": 0.3}, "addition-factor-0.3-steps-2000"),
        ("addition", {"steps": 6000, "factor": 0.5}, "addition"),
        ("copy", {"weight_decay": 1e-05}, "copy-weight-decay-1e-05"),
        ("text", {"text": "mybook.txt", "seed": 2}, "text-mybook-seed-2"),
        ("shakespeare", {"text": "books/my book.txt"}, "shakespeare-my_book"),
        ("masked", {"text": "../../Война и мир.v2.txt"}, "masked-Война_и_мир.v2"),
        ("masked", {"text": "\udcff$;.txt"}, "masked-_"),
        ("copy", {"threads": 3, "checkpoint_interval": 7, "keep_checkpoints": 9, "overwrite": True}, "copy"),
        ("copy", {"force": True, "detect_anomaly": True, "grad_accumulation_steps": 2, "name": "x"}, "copy"),
    ],
)
def test_name_has_the_task_and_the_options_that_change_what_is_learned(task, changes, name):
    assert name_of(task, **changes) == name


def test_values_that_are_nearly_the_same_have_different_names():
    assert name_of("copy", factor=0.1) != name_of("copy", factor=0.10000000000000002)


def test_long_names_are_cut_and_remain_different():
    names = [name_of("shakespeare", text=letter * 300) for letter in "abя字"]
    names += [name_of("shakespeare", text="a" * 300, seed=1), name_of("shakespeare", text="a" * 300 + "b")]
    assert len(set(names)) == len(names)
    assert all(80 < len(name.encode()) <= 100 for name in names)
    assert all(name.startswith("shakespeare-") for name in names)


def test_command_that_resumes_can_be_pasted_into_a_shell(tmp_path):
    folder = RunFolder(tmp_path / "my runs" / "it's")
    assert folder.command_from(folder.path).endswith("""/my runs/it'"'"'s'""")
