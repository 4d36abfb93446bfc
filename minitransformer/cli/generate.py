"""`minitransformer generate`: go on where a prompt ends, token by token."""

import json
import sys

import numpy as np

from minitransformer.backend import to_host
from minitransformer.decoding import Greedy, Sampling, generate_tokens
from minitransformer.decoding.incremental import SlidingState
from minitransformer.models import GPT
from minitransformer.tokenizers import tokenizer_from_dict
from minitransformer.training import load_checkpoint

HELP = "let a trained language model go on where a prompt ends"
DESCRIPTION = """\
Load a language model that `minitransformer train shakespeare` has saved, and let it go on where a prompt ends. The
tokens are printed as they come.

  minitransformer generate runs/shakespeare.safetensors --prompt "ROMEO"
  minitransformer generate runs/shakespeare.safetensors --greedy --length 200
  minitransformer generate runs/shakespeare.safetensors --temperature 0.7 --top-p 0.9 --seed 3
"""


def add_arguments(parser):
    """The command's own arguments."""
    parser.add_argument("run", metavar="RUN", help="a model file, such as runs/shakespeare.safetensors")
    parser.add_argument("--prompt", default="\n", help="what the model reads first (default: an empty line)")
    parser.add_argument("--length", type=int, default=400, help="tokens to say at most (default 400)")
    parser.add_argument("--temperature", type=float, default=0.8, help="below 1 plays safe (default 0.8)")
    parser.add_argument("--top-k", type=int, help="draw from the k likeliest tokens only")
    parser.add_argument("--top-p", type=float, help="draw from the fewest tokens whose shares add up to p")
    parser.add_argument("--no-repeat", type=int, default=0, help="never say the same run of N tokens twice")
    parser.add_argument("--greedy", action="store_true", help="always the likeliest token")


def run(arguments):
    """Load, read, say."""
    model, metadata = load_checkpoint(arguments.run)
    if not isinstance(model, GPT) or "tokenizer" not in metadata:
        raise ValueError(f"{arguments.run} holds no language model with its tokenizer: `train shakespeare` makes one")
    tokenizer = tokenizer_from_dict(metadata["tokenizer"])
    ids = tokenizer.encode(arguments.prompt.replace("\\n", "\n"))[None]
    if not ids.size:
        raise ValueError("the prompt is empty: give the model at least one token to go on from")
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
