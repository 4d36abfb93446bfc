"""`minitransformer generate`: continue a prompt, token by token."""

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

HELP = "let a trained language model continue a prompt"
DESCRIPTION = """\
Load a language model that `minitransformer train shakespeare` has saved, and let it continue a prompt. The tokens are
printed as they come.

  minitransformer generate runs/shakespeare --prompt "ROMEO"
  minitransformer generate runs/shakespeare --greedy --length 200
  minitransformer generate runs/shakespeare --temperature 0.7 --top-p 0.9 --seed 3
"""


def add_arguments(parser):
    """The command's own arguments."""
    parser.add_argument("run", metavar="RUN", help="the folder of a run, such as runs/shakespeare, or a model file")
    parser.add_argument("--prompt", default="\n", help="what the model reads first (default: an empty line)")
    parser.add_argument("--length", type=int, default=400, help="tokens to generate at most (default 400)")
    parser.add_argument("--temperature", type=float, default=0.8, help="below 1 prefers likely tokens (default 0.8)")
    parser.add_argument("--top-k", type=int, help="sample from the k most likely tokens only")
    parser.add_argument("--top-p", type=float, help="sample from the fewest tokens whose probabilities add up to p")
    parser.add_argument("--no-repeat", type=int, default=0, help="never repeat a sequence of N tokens")
    parser.add_argument("--greedy", action="store_true", help="always take the most likely token")


def run(arguments):
    """Load the model, read the prompt, print the continuation."""
    path = Path(arguments.run)
    model, metadata = load_checkpoint(path / "model.safetensors" if path.is_dir() else path)
    if not isinstance(model, GPT) or "tokenizer" not in metadata:
        raise ValueError(f"{arguments.run} holds no language model with its tokenizer: `train shakespeare` makes one")
    tokenizer = tokenizer_from_dict(metadata["tokenizer"])
    ids = tokenizer.encode(arguments.prompt.replace("\\n", "\n"))[None]
    if not ids.size:
        raise ValueError("the prompt is empty: give the model at least one token to continue")
    rng = np.random.default_rng(arguments.seed)
    choose = Greedy() if arguments.greedy else Sampling(rng, arguments.temperature, arguments.top_k, arguments.top_p)
    options = {"eos": None, "no_repeat": arguments.no_repeat}
    said, log_probs = [], []
    for token, log_prob in generate_tokens(SlidingState(model, 1), ids, arguments.length, choose, **options):
        if not said:
            sys.stdout.write(tokenizer.decode(ids[0]))
        said.append(int(token[0]))
        log_probs.append(float(to_host(log_prob)[0]))
        sys.stdout.write(tokenizer.decode(np.array(said[-1:])))
        sys.stdout.flush()
    print()
    if arguments.json:
        text = tokenizer.decode(np.array(said))
        print(json.dumps({"prompt": arguments.prompt, "text": text, "log_probs": log_probs}))
    return 0
