"""The core: the files that hold the paper's model, its training and its decoding, and need nothing else of the package.

`CORE` has them in reading order. `python -m tests.test_core_files` writes the table of docs/code.md.
"""

import ast
import re
from pathlib import Path

import minitransformer

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "minitransformer"
PAGE = ROOT / "docs" / "code.md"
TABLE = re.compile(r"(<!-- core -->\n).*?(<!-- end -->)", flags=re.DOTALL)
# file: (what it answers, the lesson that derives it)
CORE = {
    "core.py": ("What is a layer, and how does a gradient reach a parameter?", "02"),
    "backend.py": ("How does the same code run on NumPy and on CuPy?", ""),
    "checks.py": ("What is said about an argument that cannot be right?", ""),
    "functional/linear.py": ("What is the gradient of x W + b?", "02"),
    "functional/activations.py": ("What does ReLU let through, forward and backward?", "02"),
    "functional/reductions.py": ("How are short rows added up fast?", ""),
    "functional/softmax.py": ("How do scores become weights, without overflow?", "03"),
    "functional/cross_entropy.py": ("How wrong is a prediction, with label smoothing and padding?", "03"),
    "functional/embedding.py": ("How does an id become a vector, and where does its gradient go?", "04"),
    "functional/positions.py": ("How does a vector say where its token stands?", "09"),
    "functional/heads.py": ("How do the features of a token become heads?", "08"),
    "functional/dropout.py": ("What is set to zero in training?", "11"),
    "functional/attention.py": ("Who attends to whom, and what does the gradient say about it?", "05, 06, 07"),
    "functional/layer_norm.py": ("Why does the gradient of LayerNorm have three terms?", "10"),
    "layers/initializers.py": ("How large are the first weights?", "12"),
    "layers/linear.py": ("A matrix that learns.", "02"),
    "layers/dropout.py": ("Dropout as a layer.", "11"),
    "layers/embedding.py": ("One matrix that reads ids and writes logits.", "04"),
    "layers/positions.py": ("Positions added to the token vectors.", "09"),
    "layers/layer_norm.py": ("LayerNorm as a layer.", "10"),
    "layers/attention.py": ("Multi-head attention, to oneself and to the encoder.", "08"),
    "layers/feed_forward.py": ("Two matrices with a ReLU in between.", "02"),
    "layers/residual.py": ("Add and norm: how does a deep stack keep its gradient?", "11"),
    "layers/stack.py": ("N layers, one after another.", "12"),
    "layers/encoder.py": ("The left half of figure 1.", "12"),
    "layers/decoder.py": ("The right half of figure 1.", "12"),
    "config/base.py": ("What does every configuration say?", ""),
    "config/paper.py": ("The sizes of the paper's model.", "12"),
    "models/base.py": ("What do the models have in common?", "12"),
    "models/build.py": ("Which part stands where?", "12"),
    "models/transformer.py": ("Figure 1 as a whole.", "12"),
    "layers/losses.py": ("The loss of a batch.", "03"),
    "training/flat.py": ("How do all parameters become one vector?", "13"),
    "training/clipping.py": ("How is a gradient that is too long shortened?", "13"),
    "training/optimizers.py": ("Adam, and how the learning rate rises and falls.", "13"),
    "training/finite.py": ("Which step is refused?", "15"),
    "training/step.py": ("Forward, loss, backward, clip, step.", "14"),
    "training/loop.py": ("The step, again and again.", "14"),
    "decoding/rereading.py": ("How does any model write, by reading again?", "16"),
    "decoding/generate.py": ("From a model to a sequence.", "16"),
}


def lines_of(file):
    """The number of lines of a file of the package."""
    return len((PACKAGE / file).read_text("utf-8").splitlines())


def file_of(module, name):
    """Where what `from module import name` brings is defined, as a path inside the package."""
    path = PACKAGE.joinpath(*module.split(".")[1:])
    if (path / f"{name}.py").exists():
        return (path / f"{name}.py").relative_to(PACKAGE).as_posix()
    if path.with_suffix(".py").exists():
        return path.with_suffix(".py").relative_to(PACKAGE).as_posix()
    for node in ast.walk(ast.parse((path / "__init__.py").read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and name in [alias.name for alias in node.names]:
            return file_of(node.module, name)
    return (path / "__init__.py").relative_to(PACKAGE).as_posix()


def leaks():
    """{(file of the core, file outside of it that it imports)}, from the top of each file or from inside a function."""
    for file in CORE:
        for node in ast.walk(ast.parse((PACKAGE / file).read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module.split(".")[0] == "minitransformer":
                found = {file_of(node.module, alias.name) for alias in node.names}
                yield from ((file, other) for other in found - CORE.keys())


def table():
    """The core for docs/code.md, in reading order."""
    yield "| file | lines | what it answers | lesson |\n| --- | --- | --- | --- |\n"
    for file, (answer, lesson) in CORE.items():
        yield f"| [{file}](../minitransformer/{file}) | {lines_of(file)} | {answer} | {lesson} |\n"
    yield f"\n{len(CORE)} files of {sum(map(lines_of, CORE)):,} lines.\n"


def page():
    """docs/code.md as it should be."""
    return TABLE.sub(lambda match: f"{match[1]}{''.join(table())}{match[2]}", PAGE.read_text("utf-8"))


def test_no_import_leads_out_of_the_core():
    assert {"core.py", "models/transformer.py"} <= CORE.keys()
    assert file_of("minitransformer.functional", "rotate") == "functional/since_2017/rotary.py"
    assert sorted(set(leaks())) == []


def test_the_page_about_the_code_has_the_core_as_it_is():
    assert page() == PAGE.read_text("utf-8")
    assert Path(minitransformer.__file__).parent == PACKAGE


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
