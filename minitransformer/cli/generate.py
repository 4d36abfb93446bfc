"""`minitransformer generate`: continue a prompt, token by token."""

import argparse
import json
import sys
from pathlib import Path

import numpy as np

from minitransformer.backend import to_host
from minitransformer.decoding import Greedy, Sampling, generate_tokens
from minitransformer.decoding.incremental import SlidingState
from minitransformer.models import GPT
from minitransformer.tokenizers import tokenizer_from_dict
from minitransformer.training import load_checkpoint

DESCRIPTION = """\
Continue a prompt with a language model that `minitransformer train shakespeare` has saved. Each token is printed as
soon as it is generated.

  minitransformer generate runs/shakespeare --prompt "ROMEO"
  minitransformer generate runs/shakespeare --greedy --length 200
  minitransformer generate runs/shakespeare --temperature 0.7 --top-p 0.9
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's own arguments."""
    parser.add_argument("run", metavar="RUN", help="folder of a run, such as runs/shakespeare, or a model file")
    parser.add_argument("--prompt", default="\n", metavar="TEXT", help="text to continue (default: a line break)")
    parser.add_argument(
        "--length", type=int, default=400, metavar="N", help="number of tokens to generate (default 400)"
    )
    parser.add_argument(
        "--temperature",
        type=float,
        default=0.8,
        metavar="X",
        help="sampling temperature: lower values prefer likely tokens (default 0.8)",
    )
    parser.add_argument("--top-k", type=int, metavar="K", help="sample only from the K most likely tokens")
    parser.add_argument(
        "--top-p", type=float, metavar="P", help="sample from the smallest set of tokens with total probability P"
    )
    parser.add_argument(
        "--no-repeat", type=int, default=0, metavar="N", help="never repeat a sequence of N tokens (default: 0, off)"
    )
    parser.add_argument("--greedy", action="store_true", help="always choose the most likely token")


def run(arguments: argparse.Namespace) -> int:
    """Load the model, read the prompt, print the continuation."""
    path = Path(arguments.run)
    model, metadata = load_checkpoint(path / "model.safetensors" if path.is_dir() else path)
    if not isinstance(model, GPT) or "tokenizer" not in metadata:
        raise ValueError(
            f"{arguments.run} is not a language model with a tokenizer: `minitransformer train shakespeare` saves one"
        )
    tokenizer = tokenizer_from_dict(metadata["tokenizer"])
    ids = tokenizer.encode(arguments.prompt.replace("\\n", "\n"))[None]
    if not ids.size:
        raise ValueError("the prompt is empty: give the model at least one token to continue")
    rng = np.random.default_rng(arguments.seed)
    choose = Greedy() if arguments.greedy else Sampling(rng, arguments.temperature, arguments.top_k, arguments.top_p)
    generated: list[int] = []
    log_probs: list[float] = []
    state, length = SlidingState(model, 1), arguments.length
    for token, log_prob in generate_tokens(state, ids, length, choose, eos=None, no_repeat=arguments.no_repeat):
        if not generated:
            sys.stdout.write(tokenizer.decode(ids[0]))
        generated.append(int(token[0]))
        log_probs.append(float(to_host(log_prob)[0]))
        sys.stdout.write(tokenizer.decode(np.array(generated[-1:])))
        sys.stdout.flush()
    print()
    if arguments.json:
        text = tokenizer.decode(np.array(generated))
        print(json.dumps({"prompt": arguments.prompt, "text": text, "log_probs": log_probs}))
    return 0
