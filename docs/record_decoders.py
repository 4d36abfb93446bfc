"""Compare decoders of Hugging Face with ours, in small, and one of true size: records/decoders.json.

    python docs/record_decoders.py          (about two minutes, 2 GB of disk and 4 GB of memory; needs torch)

The errors are those of tests/oracle/test_huggingface_decoders.py. The model of true size has the layout of Qwen3-0.6B
and random weights, written by transformers in bfloat16, in three files. Each library reads it in a process of its own.
Then `python docs/write_tables.py` writes the tables into models.md.
"""

import datetime
import itertools
import json
import statistics
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np

from minitransformer.course import FOLDER
from minitransformer.decoding import generate_tokens
from minitransformer.interop import load_huggingface
from minitransformer.models import GPT

sys.path.append(str(FOLDER))  # where the experiments are
from experiments.measuring.timing import resident_peak
from experiments.running import describe_machine

RECORD = Path(__file__).resolve().parent / "records" / "decoders.json"
TESTS = Path(__file__).resolve().parents[1] / "tests" / "oracle" / "test_huggingface_decoders.py"
QWEN3 = {"vocab_size": 151936, "hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 28}
QWEN3 |= {"num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128, "max_position_embeddings": 40960}
QWEN3 |= {"rope_theta": 1e6, "tie_word_embeddings": True, "rms_norm_eps": 1e-6}
PROMPT, TOKENS = [[9, 7, 1000, 42, 5, 100, 77, 3]], 5


def write(folder: str) -> None:
    """A Qwen3 with random weights."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(0)
    torch.set_default_dtype(torch.bfloat16)
    Qwen3ForCausalLM(Qwen3Config(**QWEN3)).save_pretrained(folder, max_shard_size="500MB")


def ours(folder: str) -> tuple[float, list[float], list[int]]:
    """Seconds to load, seconds for each token (the first one reads the prompt, too), and the tokens."""
    start = time.perf_counter()
    model = load_huggingface(folder)
    times, tokens = [time.perf_counter()], []
    assert isinstance(model, GPT)
    state = model.decoding_state(np.array(PROMPT), TOKENS + 1)
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


def alone(part: str, folder: str) -> dict:
    """What one of the functions above measures in a process of its own."""
    output = subprocess.run([sys.executable, __file__, part, folder], check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(output.stdout.splitlines()[-1])


def worst_errors() -> list[list[str]]:
    """The worst relative error of logits and gradients, for each case of the tests."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", str(TESTS), "-k", "logits", f"--junitxml={report}"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        cases = ElementTree.parse(report).getroot().iter("testcase")
        rows = []
        for case in cases:
            worst = {entry.get("name"): float(entry.get("value", "nan")) for entry in case.iter("property")}
            rows.append(
                [case.get("name", "").split("[")[1].rstrip("]"), f"{worst['logits']:.1e}", f"{worst['worst']:.1e}"]
            )
    return sorted(rows)


def main() -> int:
    """Measure and record -> exit status."""
    with tempfile.TemporaryDirectory() as folder:
        alone("write", folder)
        measured = {name: alone(part, folder) for name, part in (("minitransformer", "ours"), ("PyTorch", "theirs"))}
    assert len({tuple(each["tokens"]) for each in measured.values()}) == 1, "both must choose the same tokens"
    rows = [
        [
            name,
            f"{each['load']:.1f} s",
            f"{each['peak'] / 1e9:.2f} GB",
            f"{each['prompt']:.2f} s",
            f"{each['token']:.3f} s",
        ]
        for name, each in measured.items()
    ]
    columns = ["Qwen3-0.6B in float32", "loading", "memory at the peak", "prompt of 8 tokens", "each further token"]
    tables = [
        {"columns": ["model", "worst error of logits", "worst error of a gradient"], "cells": worst_errors()},
        {"columns": columns, "cells": rows},
    ]
    about = {"command": "python docs/record_decoders.py", "date": str(datetime.date.today())}
    record = {**about, "machine": describe_machine(), "tables": tables}
    RECORD.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return 0


def measure(part: str, folder: str) -> int:
    """One part, in this process; prints the result as JSON."""
    if part == "write":
        write(folder)
        print("{}")
        return 0
    load, seconds, tokens = {"ours": ours, "theirs": theirs}[part](folder)
    token = statistics.median(seconds[1:])
    print(json.dumps({"load": load, "prompt": seconds[0], "token": token, "peak": resident_peak(), "tokens": tokens}))
    return 0


if __name__ == "__main__":
    sys.exit(measure(*sys.argv[1:]) if len(sys.argv) > 1 else main())
