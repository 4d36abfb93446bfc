"""The attention of a model that is too large or too different for the whole page: who looks at whom, and what it does.

The page then shows one view alone. MODEL, which `export.py` describes, has other fields:

    kind             "attention"
    title            str, such as "to be → or not to be"
    tokens           {"source": S names, "target": T names}: what is read; a GPT has the target alone
    writes           for each of the T target tokens the name of the token written there, or None in a GPT's prompt
    log_probability  of all tokens that are written, the sum of their logarithms
    maps             for each layer {"stack", "layer", "rows", "keys", "weights", "products"}; stack is "encoder",
                     "decoder" or "cross", layer counts from 1, rows and keys say whose tokens they are

weights (H, T, S) are the attention weights p, and products p times the derivative of `log_probability` with respect to
p. The derivative is that of the library's own backward pass: dp = do v^T. A positive product means that a little more
of this weight would make the text likelier, if nothing else in its row changed.
"""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from minitransformer.backend import to_device, to_host, xp
from minitransformer.decoding import decoding_state, generate_from
from minitransformer.explorer.writing import Writing
from minitransformer.functional import cross_entropy, cross_entropy_backward
from minitransformer.layers.attention import FullAttention
from minitransformer.models import Transformer
from minitransformer.models.since_2017.gpt import GPT

Data = dict[str, Any]

LONGEST = 40  # tokens of a sequence: more do not fit on the page
CONTINUED = 12  # tokens that a GPT writes after a text, which has no end
DIGITS = 4  # of weights and products
PROMPT = -1  # the target of a token that is not written; a model may write padding


class Watched(FullAttention):
    """Full attention that remembers its weights p (B, H, T, S), and dp, the gradient with respect to them."""

    weights: xp.ndarray
    dweights: xp.ndarray

    def backward(self, dy: xp.ndarray, cache: Any) -> tuple[xp.ndarray, xp.ndarray, xp.ndarray, xp.ndarray | None]:
        """As `FullAttention.backward`."""
        self.weights = cache.weights
        self.dweights = dy @ cache.v.swapaxes(-1, -2)
        return super().backward(dy, cache)


def check_attention(model: Any) -> None:
    """ValueError unless `model` is a Transformer or a GPT with full attention."""
    if not isinstance(model, Transformer | GPT):
        raise ValueError(f"the explorer shows the attention of Transformers and GPTs, not of a {type(model).__name__}")
    if model.config.attention != "full":
        raise ValueError(f"the explorer shows full attention, and this model has attention = {model.config.attention}")
    if model.config.share_layers:
        raise ValueError("the explorer shows the attention of each layer, and this model's layers are one")


def attention_data(model: Any, writing: Writing, source: Sequence[int], target: Sequence[int] | None = None) -> Data:
    """MODEL for the attention of a sentence.

    source and target are ids without bos and eos; a target of None is what the model writes with greedy decoding. A GPT
    reads the source, and then what it has written itself; it may have no target. Raises ValueError as `check_attention`
    does, and for more than 40 tokens.
    """
    check_attention(model)
    is_gpt = isinstance(model, GPT)
    read = [*source, *(writing.end if writing.task or not is_gpt else ())]
    most = min(LONGEST, model.config.max_len)
    if not 1 <= len(read) <= most - is_gpt:
        raise ValueError(f"the source has {len(read)} tokens, and the attention view shows from 1 to {most - is_gpt}")
    longest = most - len(read) if is_gpt else most
    written, start = _written(model, writing, read, longest, target)
    inputs: tuple[np.ndarray, ...]
    if is_gpt:
        inputs = (np.array([[*read, *written[:-1]]]),)
        targets = np.array([[PROMPT] * (len(read) - 1) + written])
    else:
        inputs = (np.array([read]), np.array([[*start, *written[:-1]]]))
        targets = np.array([written])
    log_probability, maps = _run(model, inputs, targets)
    names = writing.tokens
    return {
        "kind": "attention",
        "title": f"{writing.text(source)} → {writing.text([id for id in written if id not in model.config.ends])}",
        "tokens": {name: [names[id] for id in ids[0]] for name, ids in zip(_sequences(model), inputs, strict=True)},
        "writes": [None if id == PROMPT else names[id] for id in targets[0]],
        "log_probability": log_probability,
        "maps": maps,
    }


def _sequences(model):
    return ("target",) if isinstance(model, GPT) else ("source", "target")


def _written(model, writing, read, longest, target):
    """What the model writes, or the target, with eos unless it is an endless text; and what the target begins with."""
    is_gpt = isinstance(model, GPT)
    endless = is_gpt and not writing.task
    start = [model.config.start]
    if target is not None:
        written = [*target] if endless else [*target, *model.config.ends[:1]]
        if not 1 <= len(written) <= longest:
            raise ValueError(f"the answer has {len(written)} tokens, its end included, and {longest} fit at most")
        return written, start
    most = min(longest, CONTINUED) if endless else longest
    state = decoding_state(model, np.array([read]), most)
    prompt = state.prompt if is_gpt else np.array([start])
    ids = generate_from(state, prompt, most, eos=None if endless else "model").ids[0]
    return [int(id) for id in ids], start


def _run(model, inputs, targets):
    """One forward and one backward pass -> the log-probability of the targets, and the maps."""
    with watched(model) as pairs:
        logits, cache = model.forward(*inputs)
        loss, cache_loss = cross_entropy(logits, to_device(targets), pad=PROMPT)
        count = int((targets != PROMPT).sum())
        model.zero_grad()
        model.backward(cross_entropy_backward(-float(count), cache_loss), cache)
        model.zero_grad()
        maps = [{**facts, **_map(to_host(seen.weights)[0], to_host(seen.dweights)[0])} for facts, seen in pairs]
        return -count * float(to_host(loss)), maps


def _map(weights, dweights):
    return {"weights": _short(weights), "products": _short(weights * dweights)}


def _short(array):
    """float64 numbers with few digits."""
    return np.array([float(f"{x:.{DIGITS}g}") for x in array.ravel()]).reshape(array.shape)


@contextlib.contextmanager
def watched(model: Any) -> Iterator[list[tuple[Data, Watched]]]:
    """Inside the block, each attention of `model` is watched -> what is said of it, and what knows p and dp later."""
    found: list[tuple[Data, Watched]] = []
    replaced: list[Any] = []  # attentions, and their own kinds

    def watch(layers: Sequence[Any], stack: str, rows: str, keys: str, name: str = "self_attention") -> None:
        for number, layer in enumerate(layers, start=1):
            attention = getattr(layer, name).sublayer
            replaced.append((attention, attention.kind))
            attention.kind = Watched()
            found.append(({"stack": stack, "layer": number, "rows": rows, "keys": keys}, attention.kind))

    if isinstance(model, GPT):
        watch(model.blocks.layers, "decoder", "target", "target")
    else:
        watch(model.encoder.layers, "encoder", "source", "source")
        watch(model.decoder.layers, "decoder", "target", "target")
        watch(model.decoder.layers, "cross", "target", "source", "cross_attention")
    try:
        yield found
    finally:
        for attention, kind in replaced:
            attention.kind = kind
