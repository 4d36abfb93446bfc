"""Do decoders of Hugging Face compute the same here, and what does one of true size cost?

The errors are those of tests/oracle/test_huggingface_decoders.py, in a checkout. The model of true size has the layout
of Qwen3-0.6B and random weights, written by transformers in bfloat16, in three files: 2 GB of disk and 4 GB of memory.
Each library reads it in a process of its own. `--quick` has a smaller one.
"""

import itertools
import json
import statistics
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import numpy as np

from experiments.measuring import environment
from experiments.measuring.steps import need
from experiments.measuring.timing import resident_peak
from experiments.report import Options, Rows, Table, listed
from minitransformer import GPT, load_huggingface
from minitransformer.course import PACKAGE
from minitransformer.decoding import decoding_state, generate_tokens
from minitransformer.system.children import last_line

SECONDS = {True: 120, False: 240}
THREADS = None
TESTS = PACKAGE.parent / "tests" / "oracle" / "test_huggingface_decoders.py"
QWEN3: dict[str, Any] = {
    **{"vocab_size": 151936, "hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 28},
    **{"num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128, "max_position_embeddings": 40960},
    **{"rope_theta": 1e6, "tie_word_embeddings": True, "rms_norm_eps": 1e-6},
}
SMALLER = {True: {"vocab_size": 2000, "hidden_size": 256, "num_hidden_layers": 4}, False: {}}
PROMPT, TOKENS = [[9, 7, 1000, 42, 5, 100, 77, 3]], 5
SIDES = {"minitransformer": "ours", "PyTorch": "theirs"}


def write(folder: str, changes: dict[str, Any]) -> None:
    """A Qwen3 with random weights."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(0)
    torch.set_default_dtype(torch.bfloat16)
    Qwen3ForCausalLM(Qwen3Config(**{**QWEN3, **changes})).save_pretrained(folder, max_shard_size="500MB")


def ours(folder: str) -> tuple[float, list[float], list[int]]:
    """Seconds to load, seconds for each token (the first one reads the prompt, too), and the tokens."""
    start = time.perf_counter()
    model = load_huggingface(folder)
    times, tokens = [time.perf_counter()], []
    assert isinstance(model, GPT)
    state = decoding_state(model, np.array(PROMPT), TOKENS + 1)
    for token, _ in generate_tokens(state, state.prompt, TOKENS + 1, eos=None):
        tokens.append(int(token[0]))
        times.append(time.perf_counter())
    return times[0] - start, [b - a for a, b in itertools.pairwise(times)], tokens


def theirs(folder: str) -> tuple[float, list[float], list[int]]:
    """As `ours`."""
    import torch
    from transformers import AutoModelForCausalLM

    start = time.perf_counter()
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    times, tokens, ids, cache = [time.perf_counter()], [], torch.tensor(PROMPT), None
    with torch.inference_mode():
        for _ in range(TOKENS + 1):
            result = model(ids, past_key_values=cache, use_cache=True, logits_to_keep=1)
            ids, cache = result.logits[:, -1:].argmax(-1), result.past_key_values
            tokens.append(int(ids))
            times.append(time.perf_counter())
    return times[0] - start, [b - a for a, b in itertools.pairwise(times)], tokens


def alone(*arguments: Any) -> Any:
    """What `measure` finds with these arguments in a process of its own."""
    return json.loads(last_line([sys.executable, "-m", __name__, json.dumps(arguments)], env=environment()))


def measure(part: str, folder: str, changes: dict[str, Any] | None = None) -> dict[str, Any]:
    """One part, in this process: "write" the model, or read it with "ours" or "theirs"."""
    if part == "write":
        write(folder, changes or {})
        return {}
    load, seconds, tokens = {"ours": ours, "theirs": theirs}[part](folder)
    token = statistics.median(seconds[1:])
    return {"load": load, "prompt": seconds[0], "token": token, "peak": resident_peak(), "tokens": tokens}


def worst_errors(tests: Path = TESTS) -> list[dict[str, Any]]:
    """The worst relative error of logits and gradients, for each case of the tests."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", str(tests), "-k", "logits", f"--junitxml={report}"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=PACKAGE.parent)
        found = []
        for case in ElementTree.parse(report).getroot().iter("testcase"):
            worst = {entry.get("name"): float(entry.get("value", "nan")) for entry in case.iter("property")}
            name = case.get("name", "").split("[")[1].rstrip("]")
            found.append({"model": name, "logits": worst["logits"], "gradients": worst["worst"]})
    return sorted(found, key=lambda row: row["model"])


def rows(options: Options) -> Rows:
    """The errors, in a checkout, and both libraries' times and memory. Raises ValueError without transformers."""
    need("decoders", torch="oracle", transformers="oracle")
    with tempfile.TemporaryDirectory() as folder:
        alone("write", folder, SMALLER[options.quick])
        measured = [{"library": name, **alone(part, folder)} for name, part in SIDES.items()]
    return {"errors": worst_errors() if TESTS.exists() else [], "libraries": measured}


def tables(rows: Rows) -> list[Table]:
    """The errors, and what a model of true size costs."""
    errors = {"worst error of logits": ("logits", ".1e"), "worst error of a gradient": ("gradients", ".1e")}
    worst = listed("", rows["errors"], {"model": ("model",), **errors})
    costs = {
        "Qwen3-0.6B in float32": ("library",),
        "loading": (lambda row: f"{row['load']:.1f} s",),
        "memory at the peak": (lambda row: f"{row['peak'] / 1e9:.2f} GB",),
        "prompt of 8 tokens": (lambda row: f"{row['prompt']:.2f} s",),
        "each further token": (lambda row: f"{row['token']:.3f} s",),
    }
    return [*([worst] if worst.cells else []), listed("", rows["libraries"], costs)]


def findings(rows: Rows) -> list[str]:
    """Whether both choose the same tokens."""
    one, other = (row["tokens"] for row in rows["libraries"])
    return [f"Both libraries choose {'the same' if one == other else 'different'} tokens."]


def passed(rows: Rows) -> bool:
    """Whether both choose the same tokens."""
    return rows["libraries"][0]["tokens"] == rows["libraries"][1]["tokens"]


if __name__ == "__main__":
    print(json.dumps(measure(*json.loads(sys.argv[1]))))
