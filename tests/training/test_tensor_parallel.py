"""Whole models with their layers in shards train as one process does: with threads as ranks, and under mpiexec."""

import subprocess
import sys

from support.tensor_parallel import cuts_of, join_states, shard

import numpy as np
import pytest

from minitransformer.models import GPT, Transformer, TransformerConfig, gpt_config
from minitransformer.training import Adam, CrossEntropyLoss
from tests.helpers import relative_error
from tests.ranks import in_ranks, same_in_all
from tests.training import tensor
from tests.training.launching import MISSING, MPIEXEC

pytestmark = pytest.mark.host_only
SIZES = {"d_model": 12, "num_heads": 4, "d_ff": 14, "num_layers": 2, "dropout": 0.0, "max_len": 5}
MODELS = {
    "GPT": lambda: GPT(gpt_config(9, **SIZES), seed=3, dtype=np.float64),
    "GPT, rope, gated, pre-norm": lambda: GPT(
        gpt_config(9, **{**SIZES, "num_heads": 3}, positions="rope", activation="swiglu", norm="pre"),
        seed=3,
        dtype=np.float64,
    ),
    "Transformer": lambda: Transformer(TransformerConfig(vocab_size=9, **SIZES), seed=3, dtype=np.float64),
}
CASES = {"GPT": 4, "GPT, rope, gated, pre-norm": 3, "Transformer": 2}  # ranks


def trained(model, encoder_decoder):
    """Three steps of Adam -> the last loss, the weights and where they are cut."""
    rng = np.random.default_rng(1)
    ids, targets = rng.integers(3, 9, (2, 2, 5)), rng.integers(3, 9, (2, 5))
    optimizer, loss_fn = Adam(model.parameters(), lr=0.01, eps=1e-5), CrossEntropyLoss(0.1)
    for _ in range(3):
        model.zero_grad()
        logits, cache = model.forward(*ids) if encoder_decoder else model.forward(ids[0])
        loss, cache_loss = loss_fn.forward(logits, targets)
        model.backward(loss_fn.backward(1.0, cache_loss), cache)
        optimizer.step()
    return float(loss), model.state_dict(), cuts_of(model)


@pytest.mark.parametrize(("name", "size"), CASES.items(), ids=CASES)
def test_three_steps_of_a_whole_model_end_in_the_weights_of_one_process(name, size):
    pair = name == "Transformer"
    loss, whole, _ = trained(MODELS[name](), pair)
    losses, states, cuts = zip(*in_ranks(size, lambda ranks: trained(shard(MODELS[name](), ranks), pair)), strict=True)
    assert losses == pytest.approx(size * [loss], rel=1e-12)
    assert len(cuts[0]) == 2 * sum(name.endswith(("qkv.W", "contract.W")) for name in whole) + sum(
        name.endswith(("qkv.b", "expand.b")) for name in whole
    )
    joined = join_states(states, cuts[0])
    assert joined.keys() == whole.keys()
    for parameter, array in whole.items():
        assert joined[parameter].shape == array.shape
        assert relative_error(joined[parameter], array) < 1e-10
    for parameter in whole.keys() - cuts[0].keys():
        same_in_all([state[parameter] for state in states])


@pytest.mark.parametrize("size", [1, 4])
def test_one_step_of_a_block_on_several_ranks_is_that_of_one_process(size):
    assert_equal_steps(in_ranks(size, tensor.compare), size)


def assert_equal_steps(everyones, size):
    assert len({found["loss of this rank"] for found in everyones}) == 1
    for found in everyones:
        whole, norms = found["weights of the whole layer"], 4 * 64 + 2 * 64  # gammas, betas and the last biases
        assert found["weights of this rank"] == (whole - norms) / size + norms
        assert found["loss of this rank"] == pytest.approx(found["loss of one process"], rel=1e-12)
        differences = [value for what, value in found.items() if what.startswith("largest")]
        assert len(differences) == 3
        assert max(differences) < 1e-10
        assert size == 1 or max(differences) > 0  # it was not computed twice in the same way


WITH_MPI = [pytest.mark.exhaustive, pytest.mark.skipif(bool(MISSING), reason=MISSING)]


@pytest.mark.parametrize(
    "size",
    [pytest.param(3, marks=WITH_MPI), *(pytest.param(n, marks=[*WITH_MPI, pytest.mark.weekly]) for n in (1, 2, 4, 5))],
)
def test_the_demonstration_shows_the_same_step_under_mpiexec_and_refuses_more_processes_than_heads(size):
    command = [MPIEXEC, "-n", str(size), sys.executable, "-m", tensor.__name__]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if size == 5:
        assert (done.returncode, done.stderr) == (1, "at most 4 processes, one for each head\n")
        return
    assert (done.returncode, done.stderr) == (0, "")
    heading, *rows = [line.split() for line in done.stdout.splitlines()]
    assert heading == " ".join(f"rank {rank}" for rank in range(size)).split()
    table = {" ".join(row[:-size]): [float(value) for value in row[-size:]] for row in rows}
    assert len(set(table["loss of this rank"])) == 1
    assert table["loss of this rank"] == table["loss of one process"]
    largest = [value for what, values in table.items() if what.startswith("largest") for value in values]
    assert len(largest) == 3 * size
    assert max(largest) < 1e-10
