"""Bugs of recurrent stacks, of the attention on top of them, and of the encoder-decoder made of both."""

from minitransformer import functional as F
from minitransformer import layers as L
from minitransformer.decoding.incremental import RecurrentState
from minitransformer.exercises.planting import Exhibit
from minitransformer.layers.recurrent import LSTMDirection, RecurrentStack, _plan
from minitransformer.models import Seq2Seq
from minitransformer.models.recurrent import reversed_order

STACKS = (
    Exhibit(
        "all layers of a recurrent stack take the dropout mask of the first",
        "Each has drawn its own. A stack of two layers has only one mask, so test with three.",
        RecurrentStack.backward,
        "cache.dropout[layer - 1]",
        "cache.dropout[0]",
    ),
    Exhibit(
        "the input of a recurrent layer gets the gradient of one direction",
        "Both directions have read it.",
        RecurrentStack._backward_layer,
        "dx = dx + other",
        "pass",
    ),
    Exhibit(
        "the gradients of the layers' initial states come back in the order of backward",
        "Backward begins with the last layer, and the states begin with the first.",
        RecurrentStack.backward,
        "initials.insert(0, dinitial)",
        "initials.append(dinitial)",
    ),
    Exhibit(
        "both directions of a recurrent layer read forwards",
        "Then a bidirectional encoder knows nothing of what comes later.",
        _plan,
        "(False, True) if bidirectional",
        "(False, False) if bidirectional",
    ),
    Exhibit(
        "the forget bias lands on the input gate",
        "The order of the gates again: every library has another one.",
        LSTMDirection.__init__,
        "self.b.data[2 * hidden_size : 3 * hidden_size]",
        "self.b.data[hidden_size : 2 * hidden_size]",
    ),
    Exhibit(
        "a recurrent stack ignores the gradient of its final state",
        "Without attention it is the only way from the decoder back to the encoder.",
        RecurrentStack.backward,
        "None if dstate is None else [array[layer] for array in dstate]",
        "None",
    ),
)

ATTENTION = (
    Exhibit(
        "the memory's gradient through the keys is forgotten",
        "The memory is compared with the queries, and it is averaged: two ways back.",
        L.MemoryAttention.backward,
        "dmemory += dk if self.key is None else self.key.backward(dk, cache.key)",
        "_ = dk if self.key is None else self.key.backward(dk, cache.key)",
    ),
    Exhibit(
        "the decoder's state gets the gradient of its query alone",
        "It is concatenated with the context, too.",
        L.MemoryAttention.backward,
        "dh = dh + ",
        "dh = ",
    ),
    Exhibit(
        "a recurrent decoder attends to padding",
        "Works until a batch has sources of different lengths.",
        L.MemoryAttention.forward,
        "self.attend(h, memory, keys, allowed)",
        "self.attend(h, memory, keys, None)",
    ),
    Exhibit(
        "dot attention of a recurrent decoder is scaled as the Transformer's",
        "Luong et al. scale nothing. The gradients are right, and the model is another.",
        L.MemoryAttention.attend,
        "allowed, scale=1.0)",
        "allowed)",
    ),
    Exhibit(
        "additive attention's backward forgets the tanh",
        "u is tanh of the sum, so 1 - u^2 comes before q and k.",
        F.additive_attention_backward,
        "xp.subtract(1.0, de, out=de)",
        "de[...] = 1.0",
    ),
    Exhibit(
        "additive attention's backward forgets the vector w",
        "Each feature counts in the score by its own weight.",
        F.additive_attention_backward,
        "de *= w",
        "pass",
    ),
)

MODEL = (
    Exhibit(
        "the source is reversed together with its padding",
        "Then short sources begin with padding, and their tokens are not where the mask says.",
        reversed_order,
        "np.where(places < lengths, lengths - 1 - places, places)",
        "np.broadcast_to(places[::-1], ids.shape)",
    ),
    Exhibit(
        "the recurrent encoder reads padding",
        "The state after the padding is not the state after the sentence: longer batches change the answer.",
        Seq2Seq.encode,
        "tokens_of(source)",
        "None",
    ),
    Exhibit(
        "the recurrent decoder starts from zeros",
        "Without attention it then knows nothing of the source.",
        Seq2Seq.decode,
        "self.decoder.forward(x, state, ",
        "self.decoder.forward(x, None, ",
    ),
    Exhibit(
        "the encoder of a Seq2Seq learns through the attention alone",
        "The gradient of the decoder's first state is the gradient of the encoder's last one.",
        Seq2Seq.encode_backward,
        "dencoded.state)",
        "None)",
    ),
    Exhibit(
        "the alignment of a reversed source is shown reversed",
        "The figure would show a model that reverses as one that copies.",
        Seq2Seq.attention_weights,
        "if self.config.reverse_source:",
        "if False:",
    ),
    Exhibit(
        "beam search keeps the recurrent states of the rows that it dropped",
        "States must follow their hypotheses, as KV caches do.",
        RecurrentState._select,
        "array[:, kept] for",
        "array[:, : len(rows)] for",
    ),
    Exhibit(
        "a recurrent decoder reads each new token as if it were the first",
        "Without attention every step would answer the same.",
        RecurrentState._extend,
        "y, self.state = ",
        "y, _ = ",
    ),
)

EXHIBITS = (*STACKS, *ATTENTION, *MODEL)
