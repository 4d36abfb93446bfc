"""Bugs in the family of the Transformer, GPT, BERT and T5, in their data, and in weights that come from elsewhere."""

from minitransformer.data.masked import MaskedTask
from minitransformer.data.prompted import prompted
from minitransformer.data.text import TextTask
from minitransformer.decoding.incremental import GPTState
from minitransformer.exercises.planting import Exhibit
from minitransformer.interop.huggingface_configs import _gpt2, _t5
from minitransformer.interop.huggingface_tables import _bert_layer, _t5_layer
from minitransformer.models import BERT, GPT, Transformer
from minitransformer.models.bert import BERTEmbedding, ClassifierHead, MaskedHead

GPTS = (
    Exhibit(
        "a GPT without its causal mask",
        "Each token sees the one it is to predict: training looks wonderful, and nothing can be generated.",
        GPT.forward,
        "causal_mask(ids.shape[1])",
        "None",
    ),
    Exhibit(
        "a GPT whose mask forgets the token itself",
        "Each position looks only at those before it, and the first at nothing.",
        GPT.forward,
        "causal_mask(ids.shape[1])",
        "causal_mask(ids.shape[1] + 1)[:, :, :-1, 1:]",
    ),
    Exhibit(
        "a GPT sees the padding before its prompt",
        "The positions are right, and what stands at those before the first is looked at all the same.",
        GPTState.extend,
        "self.padding[:, None])",
        "0 * self.padding[:, None])",
    ),
    Exhibit(
        "an untied GPT has its output tied all the same",
        "A switch that is read nowhere: is the number of parameters what it should be?",
        GPT.__init__,
        "E if config.has_tied_output else Parameter(normal(rng, (V, C), std, dtype))",
        "E",
    ),
)

BERTS = (
    Exhibit(
        "the segments' table has no gradient",
        "Three vectors are added, and two learn.",
        BERTEmbedding.backward,
        "self.segments.backward(dx, cache_segments)",
        "pass",
    ),
    Exhibit(
        "a BERT takes all tokens for the first segment",
        "The segments are checked, and never used.",
        BERT.forward,
        "self.embedding.forward(ids, segments, rng)",
        "self.embedding.forward(ids, np.zeros_like(ids), rng)",
    ),
    Exhibit(
        "the class is read off the last token",
        "In a padded batch that is padding; forward and backward agree, so no gradient check can tell.",
        ClassifierHead.forward,
        "x[:, 0]",
        "x[:, -1]",
        also=((ClassifierHead.backward, "dx[:, 0]", "dx[:, -1]"),),
    ),
    Exhibit(
        "the pooler's gradient goes to all tokens",
        "Written without an index, it is broadcast.",
        ClassifierHead.backward,
        "dx[:, 0] = self.pooler.backward(tanh_backward(da, cache_tanh), cache_pooler)",
        "dx += self.pooler.backward(tanh_backward(da, cache_tanh), cache_pooler)[:, None]",
    ),
    Exhibit(
        "the masked head's bias sums its gradient over the batch alone",
        "Broadcast back over positions by +=, it only has the right shape where T = 1 or by luck.",
        MaskedHead.backward,
        "dlogits.sum(axis=(0, 1))",
        "dlogits.sum(axis=0).mean(axis=0)",
    ),
    Exhibit(
        "a BERT lets all see its padding",
        "A mask that is built and not handed over.",
        BERT.forward,
        "padding_mask(to_device(ids), PAD)",
        "None",
    ),
)

T5S = (
    Exhibit(
        "T5's logits are multiplied by the root of d_model where they should be divided",
        "Its embeddings are tied and not scaled on the way in, so here, and only here, they are.",
        Transformer.__init__,
        "config.d_model**-0.5 if config.scale_output",
        "config.d_model**0.5 if config.scale_output",
    ),
    Exhibit(
        "T5's logits are not scaled",
        "A constant factor: the likeliest token stays the same, and no probability does.",
        Transformer.__init__,
        "config.d_model**-0.5 if config.scale_output",
        "1.0 if config.scale_output",
    ),
    Exhibit(
        "the padding that T5 starts with is hidden like any other",
        "The first query sees nothing, and all others one token less than in training.",
        Transformer.target_allowed,
        "seen[..., 0] = True",
        "pass",
    ),
    Exhibit(
        "a decoded token that is padding is taken for the start",
        "Right for the first token, and then for every one that follows.",
        Transformer.target_allowed,
        "self.config.starts_with_padding and start == 0",
        "self.config.starts_with_padding",
    ),
    Exhibit(
        "the gate and what it lets up are exchanged",
        "Two matrices of one shape, side by side: whoever converts weights must know which is which.",
        _t5_layer,
        '("wi_0", "wi_1")',
        '("wi_1", "wi_0")',
    ),
    Exhibit(
        "queries, keys and values are packed in another order",
        "Again three matrices of one shape.",
        _bert_layer,
        '("query", "key", "value")',
        '("key", "query", "value")',
    ),
)

DATA = (
    Exhibit(
        "the masked loss is over all tokens",
        "Six of seven answers stand in the input: a loss that falls fast and teaches to copy.",
        MaskedTask.mask_tokens,
        "np.where(chosen, ids, PAD)",
        "ids",
    ),
    Exhibit(
        "the answers are the tokens after hiding",
        "Then the answer to every mask is the mask.",
        MaskedTask.mask_tokens,
        "np.where(chosen, ids, PAD)",
        "np.where(chosen, masked, PAD)",
    ),
    Exhibit(
        "no token that is asked for is left as it is",
        "The model learns to trust whatever is not the mask.",
        MaskedTask.mask_tokens,
        "(fate < MASKED + RANDOM)",
        "(fate < 1)",
    ),
    Exhibit(
        "the successors of a window are its own tokens",
        "One index: the loss falls to zero in no time.",
        TextTask.batch,
        "TextBatch(windows[:, :-1], windows[:, 1:])",
        "TextBatch(windows[:, 1:], windows[:, 1:])",
    ),
    Exhibit(
        "the last window of a text is never drawn",
        "The upper end of a random integer is not among those drawn.",
        TextTask.batch,
        "len(self.train) - self.length, size",
        "len(self.train) - self.length - 1, size",
    ),
    Exhibit(
        "the held-out windows overlap",
        "Some text is counted twice, and some never.",
        TextTask.held_out_batches,
        "range(0, count, size)",
        "range(0, count, max(1, size - 1))",
    ),
    Exhibit(
        "the prompt is asked for, too",
        "A random source has no pattern to learn: the loss can never fall below it.",
        prompted,
        "np.full(len(source) - 1, PAD)",
        "source[1:]",
    ),
)

ACTIVATIONS_OF_OTHERS = tuple(
    Exhibit(
        f"{theirs!r} of {model} is taken for {wrong!r}",
        "Two names for two functions that differ by 0.0005, or for one function: look them up where they are used.",
        translate,
        f"{table}[given",
        f"{{**{table}, {theirs!r}: {wrong!r}}}[given",
    )
    for model, translate, table, theirs, wrong in (
        ("T5", _t5, "T5_ACTIVATIONS", "gelu", "gelu_tanh"),
        ("T5", _t5, "T5_ACTIVATIONS", "silu", "gelu"),
        ("GPT-2", _gpt2, "GPT2_ACTIVATIONS", "swish", "gelu"),
        ("GPT-2", _gpt2, "GPT2_ACTIVATIONS", "gelu_pytorch_tanh", "gelu"),
    )
)

EXHIBITS = (*ACTIVATIONS_OF_OTHERS, *GPTS, *BERTS, *T5S, *DATA)
