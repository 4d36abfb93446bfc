"""A name of an activation in a Hugging Face file means the function that it means in their library."""

import pytest

from minitransformer.interop import config_from_huggingface
from tests.interop.test_huggingface import GPT2_FILE, T5_FILE

pytestmark = pytest.mark.host_only

GPT2_ACTIVATIONS = {
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu": "gelu",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
}
T5_ACTIVATIONS = {
    "relu": "relu",
    "gelu": "gelu",
    "silu": "silu",
    "gated-gelu": "geglu_tanh",  # T5 version 1.1 has the tanh form under this name
    "gated-silu": "swiglu",
}


@pytest.mark.parametrize(("theirs", "ours"), GPT2_ACTIVATIONS.items())
def test_each_name_of_an_activation_of_gpt2_means_the_function_it_means_there(theirs, ours):
    assert config_from_huggingface(GPT2_FILE | {"activation_function": theirs}).activation == ours


@pytest.mark.parametrize(("theirs", "ours"), T5_ACTIVATIONS.items())
def test_each_name_of_an_activation_of_t5_means_the_function_it_means_there(theirs, ours):
    assert config_from_huggingface(T5_FILE | {"feed_forward_proj": theirs}).activation == ours
