"""Every array of a model on the page, as the library computes it: recorded from its layers while they run."""

import copy

import numpy as np

from minitransformer.data.prompted import prompted
from minitransformer.data.tasks import Batch
from minitransformer.example.numbers import STACKS, by_lesson_names
from minitransformer.functional import cross_entropy, cross_entropy_backward, softmax_backward, split_heads
from minitransformer.models import GPT
from minitransformer.vocabulary import PAD


class Recorder:
    """What goes into forward and backward of one layer, and what comes out, without the batch axis."""

    def __init__(self, layer):
        self.layer, self._forward, self._backward = layer, layer.forward, layer.backward
        layer.forward, layer.backward = self.forward, self.backward

    def forward(self, *inputs, **options):
        self.inputs = inputs
        self.y, self.cache = self._forward(*inputs, **options)
        return self.y, self.cache

    def backward(self, dy, cache):
        self.dy = dy.copy()  # some layers write into it
        self.dx = self._backward(dy, cache)
        return self.dx


def recorded_numbers(example, smoothing=0.0):
    """As `minitransformer.example.numbers`, for a Transformer or GPT of any shape that the page shows."""
    example = example._replace(model=copy.deepcopy(example.model))  # its layers stay changed
    model, (inputs, targets) = example.model, sequences(example)
    ids = {"target": inputs[-1], "source": inputs[0]}
    recorders = [arrays for stack in stacks_of(model) for arrays in record(model, *stack, ids)]
    output = Recorder(model.output)
    z, cache = model.forward(*inputs)
    loss, cache_loss = cross_entropy(z, targets, smoothing)
    model.zero_grad()
    model.backward(cross_entropy_backward(1.0, cache_loss), cache)
    found = {name: array for arrays in recorders for name, array in arrays().items()}
    grads = {name: each.grad for name, each in model.named_parameters()}
    for name, grad in by_lesson_names(grads, model.config.num_layers).items():
        place, dot, symbol = name.rpartition(".")
        found[f"{place}{dot}d{symbol}"] = grad[: ids[place].shape[1]] if symbol == "P" else grad
    found |= {"output.y": output.inputs[0], "output.z": z, "output.p": cache_loss.p, "output.L": loss}
    found |= {"output.dz": output.dy, "output.dy": output.dx}
    return {name: np.asarray(array) for name, array in found.items()}


def stacks_of(model):
    """(rows, the library's name, the embedding) of each stack."""
    if isinstance(model, GPT):
        return [("target", "blocks", model.embedding)]
    return [("source", "encoder", model.source_embedding), ("target", "decoder", model.target_embedding)]


def sequences(example):
    """The inputs and targets, arranged as in the recipes' batches; padding at the end stays."""
    if not isinstance(example.model, GPT):
        return (example.source, example.target_in), example.target_out
    batch = prompted(Batch(*example[2:]))
    padding = np.full((1, (example.source == PAD).sum() + (example.target_in == PAD).sum()), PAD)
    ids, targets = (np.concatenate([rows, padding], axis=1) for rows in batch)
    return (ids,), targets


def record(model, rows, stack_name, embedding, ids):
    """Functions that return the arrays of each place of a stack, after the passes."""
    stack, layers = getattr(model, stack_name), model.config.num_layers
    lesson, parts = STACKS[stack_name]
    rotary = model.config.positions == "rope"
    whole, start = Recorder(stack), Recorder(embedding)
    yield lambda: of_embedding(rows, start, ids[rows])
    for number, layer in enumerate(stack.layers, start=1):
        for n, (part, kind) in enumerate(parts.items(), start=1):
            at = f"{lesson}{number if layers > 1 else ''}."
            place = "cross" if kind == "cross" and layers == 1 else at + kind
            residual = getattr(layer, part)
            around, inside, norm = Recorder(residual), Recorder(residual.sublayer), Recorder(residual.norm)
            pieces = {
                name: Recorder(piece) for name, piece in vars(residual.sublayer).items() if hasattr(piece, "backward")
            }
            of = of_network if kind == "ffn" else of_attention
            yield lambda of=of, place=place, inside=inside, pieces=pieces: of(place, inside, pieces, rotary)
            yield lambda name=f"{at}norm{n}", norm=norm, around=around: of_norm(name, norm, around)
    if stack.norm is not None:
        last = Recorder(stack.norm)
        yield lambda: of_norm(f"{lesson}.norm", last, last)
    if rows == "source":
        yield lambda: {"M": whole.y, "dM": whole.dy}


def of_embedding(place, layer, ids):
    tokens = layer.layer.tokens
    return {
        f"{place}.e": tokens.E.data[ids],
        f"{place}.x": layer.y,
        f"{place}.dx": layer.dy,
        f"{place}.de": layer.dy * tokens.scale,
    }


def of_attention(place, layer, pieces, rotary):
    found = of_sublayer(place, layer)
    heads, kind = layer.layer.num_heads, pieces["kind"]
    q, k, v = kind.inputs[:3]
    p, dp = kind.cache.weights, kind.dy @ v.swapaxes(-1, -2)
    found |= {f"{place}.{name}": array for name, array in zip("qkv", (q, k, v), strict=True)}
    found |= {f"{place}.d{name}": array for name, array in zip("qkv", kind.dx[:3], strict=True)}
    found |= {f"{place}.s": q @ k.swapaxes(-1, -2) / q.shape[-1] ** 0.5, f"{place}.p": p, f"{place}.o": kind.y}
    found |= {f"{place}.do": kind.dy, f"{place}.dp": dp, f"{place}.ds": softmax_backward(dp, p)}
    allowed = kind.inputs[3] if len(kind.inputs) > 3 else None
    found[f"{place}.allowed"] = np.broadcast_to(True if allowed is None else allowed, (1, 1, *p.shape[2:]))
    if len(layer.inputs) > 2:  # x, memory and the mask
        found[f"{place}.M"] = layer.inputs[1]
    elif rotary:
        for d, both in (("", pieces["qkv"].y), ("d", pieces["qkv"].dy)):
            turned = np.split(both, 3, axis=-1)
            found |= {f"{place}.{d}{name}_0": split_heads(turned["qk".index(name)], heads) for name in "qk"}
    return found


def of_sublayer(place, layer):
    found = {f"{place}.x": layer.inputs[0], f"{place}.y": layer.y, f"{place}.dy": layer.dy}
    if isinstance(layer.dx, tuple):
        return found | {f"{place}.dx": layer.dx[0], f"{place}.dM": layer.dx[1]}
    return found | {f"{place}.dx": layer.dx}


def of_network(place, layer, pieces, rotary):
    expand, contract = pieces["expand"], pieces["contract"]
    found = {
        f"{place}.a": expand.y,
        f"{place}.r": contract.inputs[0],
        f"{place}.dr": contract.dx,
        f"{place}.da": expand.dy,
    }
    return of_sublayer(place, layer) | found


def of_norm(place, norm, around):
    """With pre-norm, x is also what goes around the sub-layer, so its gradient is that of both paths."""
    x, cache = norm.inputs[0], norm.cache
    isPre = around.inputs[0] is x
    dx = around.dx if isPre else norm.dx
    return {
        f"{place}.x": x,
        f"{place}.mu": x.mean(axis=-1),
        f"{place}.sigma": 1.0 / cache.rstd,
        f"{place}.x_hat": cache.x_hat,
        f"{place}.y": norm.y,
        f"{place}.dy": norm.dy,
        f"{place}.dx_hat": norm.dy * cache.gamma,
        f"{place}.dx": dx[0] if isinstance(dx, tuple) else dx,
    }
