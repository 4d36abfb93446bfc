"""Greedy decoding, beams and the loss of Hugging Face's models in which id 0 is a token, against transformers."""

import numpy as np
import pytest

from minitransformer.backend import to_host
from minitransformer.data.text import TextBatch
from minitransformer.decoding import beam_search, decoding_state, generate_from
from minitransformer.interop import from_huggingface, model_from_huggingface
from minitransformer.layers.losses import loss_for
from minitransformer.training.parallel.parts import gradients_of

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tests.oracle.test_huggingface_decoders import in_float64  # noqa: E402 - it needs transformers

pytestmark = pytest.mark.host_only

V, NEW = 13, 8
DECODER = {"vocab_size": V, "hidden_size": 12, "intermediate_size": 20, "num_hidden_layers": 2}
DECODER |= {"num_attention_heads": 3, "num_key_value_heads": 1, "max_position_embeddings": 32, "initializer_range": 0.7}
GPT2 = {"vocab_size": V, "n_positions": 32, "n_embd": 12, "n_layer": 2, "n_head": 3, "initializer_range": 0.7}
T5 = {"vocab_size": V, "d_model": 12, "d_kv": 4, "d_ff": 20, "num_layers": 2, "num_heads": 3, "initializer_factor": 2.0}
MODELS = {
    "GPT-2": ("GPT2LMHeadModel", "GPT2Config", GPT2 | {"bos_token_id": 5, "eos_token_id": 5}),
    "Llama": ("LlamaForCausalLM", "LlamaConfig", DECODER | {"bos_token_id": 1, "eos_token_id": [5, 7]}),
    "Qwen": ("Qwen2ForCausalLM", "Qwen2Config", DECODER | {"eos_token_id": 5, "pad_token_id": 5}),
    "padding": ("LlamaForCausalLM", "LlamaConfig", DECODER | {"eos_token_id": 5, "pad_token_id": 3}),
    "T5": ("T5ForConditionalGeneration", "T5Config", T5 | {"decoder_start_token_id": 0}),
    "T5, others": (
        "T5ForConditionalGeneration",
        "T5Config",
        T5 | {"pad_token_id": 3, "decoder_start_token_id": 4, "eos_token_id": [5, 7]},
    ),
}
PROMPTS, LENGTHS = np.array([[4, 0, 9, 0], [0, 8, 2, 2], [10, 0, 0, 2], [6, 2, 2, 2]]), [4, 2, 3, 1]
IS_TOKEN = np.arange(4) < np.array(LENGTHS)[:, None]


def build(name, seed):
    """Their model with random weights, far from uniform, in float64; and ours with the same."""
    kind, config, settings = MODELS[name]
    torch.manual_seed(seed)
    with in_float64():
        config = getattr(transformers, config)(**settings, attn_implementation="eager")
        theirs = getattr(transformers, kind)(config).double().eval()
    return theirs, model_from_huggingface(theirs.state_dict(), theirs.config.to_dict(), dtype="float64")


def their_answers(theirs, ours, beams):
    """The new ids of each prompt, up to the end."""
    ids, mask = sources(ours), sources(ours) != ours.config.padding
    if not theirs.config.is_encoder_decoder:  # theirs are padded on the left
        order = (np.arange(4) + np.array(LENGTHS)[:, None]) % 4
        ids, mask = np.take_along_axis(PROMPTS, order, axis=1), np.take_along_axis(IS_TOKEN, order, axis=1)
    how = {"do_sample": False, "max_new_tokens": NEW, "pad_token_id": ours.config.filler}
    how |= {"num_beams": beams, "length_penalty": 0.0} if beams > 1 else {}
    with in_float64():
        found = theirs.generate(torch.tensor(ids), attention_mask=torch.tensor(mask).long(), **how).tolist()
    start = 1 if theirs.config.is_encoder_decoder else PROMPTS.shape[1]
    return [up_to_the_end(row[start:], ours.config.ends) for row in found]


def up_to_the_end(ids, ends):
    places = [place for place, id in enumerate(ids) if id in ends]
    return [int(id) for id in ids[: places[0] + 1 if places else None]]


def sources(ours):
    """The prompts as the sources of a T5, with its padding at their ends."""
    return np.where(IS_TOKEN, PROMPTS, ours.config.filler)


def our_state(ours):
    """A state for the prompts."""
    return (
        decoding_state(ours, sources(ours), NEW)
        if hasattr(ours, "encode")
        else decoding_state(ours, PROMPTS, NEW, LENGTHS)
    )


@pytest.mark.parametrize("beams", [1, 3])
@pytest.mark.parametrize("name", MODELS)
def test_answers_to_prompts_of_several_lengths_with_id_0_inside_are_theirs(name, beams):
    seen = []
    for seed in range(3):
        theirs, ours = build(name, seed)
        state = our_state(ours)
        if beams == 1:
            found = [up_to_the_end(row, ours.config.ends) for row in generate_from(state, state.prompt, NEW).ids]
        else:
            answers = beam_search(state, len(PROMPTS), NEW, state.prompt, beams, 0.0)
            found = [[int(id) for id in hypotheses[0].ids] for hypotheses in answers]
        for row, their_row in zip(found, their_answers(theirs, ours, beams), strict=True):
            if ours.config.padding not in their_row:  # their T5 attends to padding that it writes itself
                assert row == their_row
                seen.append(row)
    assert len({tuple(row) for row in seen}) > 5, "they must not all be alike"


@pytest.mark.parametrize("name", ["GPT-2", "Llama", "Qwen"])
def test_loss_and_gradients_of_a_text_with_id_0_are_those_of_pytorch(name):
    theirs, ours = build(name, 4)
    text = np.array([[3, 0, 4, 0, 6, 0], [4, 0, 6, 0, 0, 3]])  # "Stop! Go! ...", with "!" as id 0
    with in_float64():
        logits = theirs(torch.tensor(text[:, :-1])).logits
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), torch.tensor(text[:, 1:]).flatten())
    loss.backward()
    measured = gradients_of(ours, loss_for(ours))(TextBatch(text[:, :-1], text[:, 1:]))
    assert float(measured.loss) == pytest.approx(loss.item(), rel=1e-12)
    state = {parameter: value.grad for parameter, value in theirs.named_parameters()}
    expected, found = from_huggingface(state, theirs.config.to_dict()), dict(ours.named_parameters())
    assert expected.keys() == found.keys()
    for parameter, gradient in expected.items():
        error = abs(to_host(found[parameter].grad) - gradient).max()
        assert error < 1e-11 * max(1.0, abs(gradient).max()), parameter
