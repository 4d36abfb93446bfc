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
of this weight would make the text likelier, if nothing else in its row changed. The sum of a head's products is the
derivative with respect to a factor of its whole output, at 1: sum_ti p_ti do_t . v_i = sum_t do_t . o_t.

A BERT writes nothing: it reads two sentences, whose tokens, rows, keys and stacks are called "first" and "second", and
`cosine`, that of the means of their features, takes the place of `writes` and `log_probability`.
"""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from minitransformer.backend import to_device, to_host, xp
from minitransformer.data.labelled import encode_sentences
from minitransformer.data.pairs import tidy
from minitransformer.decoding import decoding_state, generate_from
from minitransformer.explorer.export import Data
from minitransformer.explorer.writing import Writing
from minitransformer.functional import cross_entropy, cross_entropy_backward
from minitransformer.layers.attention import FullAttention
from minitransformer.models import Transformer
from minitransformer.models.since_2017.bert import BERT
from minitransformer.models.since_2017.gpt import GPT
from minitransformer.plotting import readable
from minitransformer.tokenizers import Tokenizer

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


def check_attention(model: Any, kinds: Any = Transformer | GPT) -> None:
    """ValueError unless `model` is a Transformer or a GPT, or of other `kinds`, with full attention."""
    if not isinstance(model, kinds):
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
    written = _written(model, writing, read, longest, target)
    if is_gpt:
        inputs = {"target": np.array([[*read, *written[:-1]]])}
        targets = np.array([[PROMPT] * (len(read) - 1) + written])
    else:
        inputs = {"source": np.array([read]), "target": np.array([[model.config.start, *written[:-1]]])}
        targets = np.array([written])
    log_probability, maps = _run(model, inputs, targets)
    names = writing.tokens
    return {
        "kind": "attention",
        "title": f"{writing.text(source)} → {writing.text([id for id in written if id not in model.config.ends])}",
        "tokens": {name: [names[id] for id in ids[0]] for name, ids in inputs.items()},
        "writes": [None if id == PROMPT else names[id] for id in targets[0]],
        "log_probability": log_probability,
        "maps": maps,
    }


def _written(model, writing, read, longest, target):
    """What the model writes, or the target, with eos unless it is an endless text."""
    is_gpt = isinstance(model, GPT)
    endless = is_gpt and not writing.task
    if target is not None:
        written = [*target] if endless else [*target, *model.config.ends[:1]]
        if not 1 <= len(written) <= longest:
            raise ValueError(f"the answer has {len(written)} tokens, its end included, and {longest} fit at most")
        return written
    most = min(longest, CONTINUED) if endless else longest
    state = decoding_state(model, np.array([read]), most)
    ids = generate_from(state, state.prompt, most, eos=None if endless else "model").ids[0]
    return [int(id) for id in ids]


def _run(model, inputs, targets):
    """One forward and one backward pass -> the log-probability of the targets, and the maps."""
    with watched(model) as pairs:
        logits, cache = model.forward(*inputs.values())
        loss, cache_loss = cross_entropy(logits, to_device(targets), pad=PROMPT)
        count = int((targets != PROMPT).sum())
        model.backward(cross_entropy_backward(-float(count), cache_loss), cache)
        model.zero_grad()
        return -count * float(to_host(loss)), [{**facts, **_map(seen)} for facts, seen in pairs]


def sentences_data(model: BERT, tokenizer: Tokenizer, first: str, second: str) -> Data:
    """MODEL for the cosine of two sentences, each of which a BERT reads by itself.

    Raises ValueError as `check_attention` does, for a sentence that is empty or has more than 40 tokens, and for two
    that are the same to the model.
    """
    check_attention(model, BERT)
    most = min(LONGEST, model.config.max_len)
    texts, sentences = {"first": tidy(first), "second": tidy(second)}, {}
    for name, text in texts.items():
        if not text:
            raise ValueError(f"the {name} sentence is empty")
        sentences[name] = encode_sentences(tokenizer, [text], most + 1, model.config)
        if sentences[name].size > most:
            raise ValueError(f"the {name} sentence has more than {most} tokens, its beginning and end included")
    if np.array_equal(sentences["first"], sentences["second"]):
        raise ValueError("both sentences have the same tokens: their cosine is 1, and its gradient 0 everywhere")
    cosine, maps = _compare(model, sentences)
    return {
        "kind": "attention",
        "title": f"cosine {cosine:.3f}: {' ↔ '.join(texts.values())}",
        "tokens": {name: [readable(tokenizer.tokens[id]) for id in ids[0]] for name, ids in sentences.items()},
        "cosine": cosine,
        "maps": maps,
    }


def _compare(model, sentences):
    """One forward and one backward pass of each of two sentences -> the cosine of their vectors, and the maps.

    Forward    m = 1/T sum_t y_t        u = m / |m|        c = u . u'
    Chain      dm = (u' - c u) / |m|    dy_t = dm / T      and the same for the other sentence, with u and u' swapped
    Check      dm . m = 0, because a longer m has the same direction
    """
    maps = []
    with watched(model) as pairs:
        passes = [model.features(ids) for ids in sentences.values()]
        means = [y.mean(axis=1) for y, _ in passes]  # (1, C)
        norms = [xp.sqrt((m * m).sum()) for m in means]
        u, v = (m / norm for m, norm in zip(means, norms, strict=True))
        cosine = (u * v).sum()
        dmeans = ((v - cosine * u) / norms[0], (u - cosine * v) / norms[1])
        for name, (y, cache), dm in zip(sentences, passes, dmeans, strict=True):
            model.features_backward(xp.zeros_like(y) + dm / y.shape[1], cache)
            maps += [{**facts, "stack": name, "rows": name, "keys": name, **_map(seen)} for facts, seen in pairs]
        model.zero_grad()
        return float(to_host(cosine)), maps


def _map(seen):
    weights, dweights = (to_host(array)[0] for array in (seen.weights, seen.dweights))
    return {"weights": _short(weights), "products": _short(weights * dweights)}


def _short(array):
    """float64 numbers with few digits."""
    return np.array([float(f"{x:.{DIGITS}g}") for x in array.ravel()]).reshape(array.shape)


@contextlib.contextmanager
def watched(model: Any) -> Iterator[list[tuple[Data, Watched]]]:
    """Inside the block, each attention of `model` is watched -> what is said of it, and what knows p and dp later."""
    found: list[tuple[Data, Watched]] = []

    def watch(layers: Sequence[Any], stack: str, rows: str, keys: str, name: str = "self_attention") -> None:
        for number, layer in enumerate(layers, start=1):
            attention = getattr(layer, name).sublayer
            put_back.callback(setattr, attention, "kind", attention.kind)
            attention.kind = Watched()
            found.append(({"stack": stack, "layer": number, "rows": rows, "keys": keys}, attention.kind))

    with contextlib.ExitStack() as put_back:
        if isinstance(model, GPT):
            watch(model.blocks.layers, "decoder", "target", "target")
        else:
            watch(model.encoder.layers, "encoder", "source", "source")
        if isinstance(model, Transformer):
            watch(model.decoder.layers, "decoder", "target", "target")
            watch(model.decoder.layers, "cross", "target", "source", "cross_attention")
        yield found
