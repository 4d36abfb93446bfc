"""Bugs in the family of the Transformer, GPT, BERT and T5, in their data, and in weights that come from elsewhere."""

from minitransformer.data.masked import MaskedTask
from minitransformer.data.prompted import prompted
from minitransformer.data.text import TextTask
from minitransformer.decoding.incremental import GPTState
from minitransformer.exercises.planting import Exhibit
from minitransformer.interop import config_from_huggingface
from minitransformer.interop.huggingface_tables import _bert_layer, _t5_layer
from minitransformer.layers import CrossAttention
from minitransformer.models import BERT, GPT, Transformer
from minitransformer.models.bert import BERTEmbedding, ClassifierHead, MaskedHead

GPTS = (
    Exhibit(
        "a GPT without its causal mask",
        "Each token sees the one it is to predict: training looks wonderful, and nothing can be generated.",
        GPT.features,
        "causal_mask(ids.shape[1])",
        "None",
    ),
    Exhibit(
        "a GPT whose mask forgets the token itself",
        "Each position looks only at those before it, and the first at nothing.",
        GPT.features,
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
        BERT.features,
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
        "dlogits.reshape(-1, dlogits.shape[-1]).sum(axis=0)",
        "dlogits.sum(axis=0).reshape(-1, dlogits.shape[-1]).mean(axis=0)",
    ),
    Exhibit(
        "a BERT lets all see its padding",
        "A mask that is built and not handed over.",
        BERT.features,
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
        f"{theirs!r} in a file of {model} is taken for {wrong!r}",
        "Two names for two functions that differ by 0.0005, or for one function: look them up where they are used.",
        config_from_huggingface,
        "return kind.translate(given, changes)",
        f"""if given.get({field!r}) == {theirs!r}:
        changes = {{"activation": {wrong!r}, **changes}}
    return kind.translate(given, changes)""",
    )
    for model, field, theirs, wrong in (
        ("T5", "feed_forward_proj", "gelu", "gelu_tanh"),
        ("T5", "feed_forward_proj", "silu", "gelu"),
        ("GPT-2", "activation_function", "swish", "gelu"),
        ("GPT-2", "activation_function", "gelu_pytorch_tanh", "gelu"),
    )
)

DROPOUT = tuple(
    Exhibit(
        f"{what} is left without dropout",
        "A generator that is not passed on: None means evaluation, and nothing complains.",
        function,
        old,
        new,
    )
    for what, function, old, new in (
        (
            "the embedding of the target",
            Transformer.decode,
            "self.target_embedding.forward(target, rng)",
            "self.target_embedding.forward(target)",
        ),
        (
            "the embedding of the source",
            Transformer.encode,
            "self.source_embedding.forward(source, rng)",
            "self.source_embedding.forward(source)",
        ),
        ("the encoder", Transformer.encode, "self._source_allowed(source), rng)", "self._source_allowed(source))"),
        ("the stack of a GPT", GPT.features, "self.blocks.forward(x, mask, rng=rng)", "self.blocks.forward(x, mask)"),
        ("the embedding of a GPT", GPT.features, "self.embedding.forward(ids, rng)", "self.embedding.forward(ids)"),
        (
            "the encoder of a BERT",
            BERT.features,
            "padding_mask(to_device(ids), PAD), rng)",
            "padding_mask(to_device(ids), PAD))",
        ),
        ("the embedding of a BERT", BERTEmbedding.forward, "self.dropout.forward(n, rng)", "self.dropout.forward(n)"),
        (
            "what a BERT tells classes by",
            ClassifierHead.forward,
            "self.dropout.forward(a, rng)",
            "self.dropout.forward(a)",
        ),
        (
            "cross-attention",
            CrossAttention.forward,
            "self._attend(q, k, v, allowed, rng)",
            "self._attend(q, k, v, allowed, None)",
        ),
    )
)

BEGINNING = (
    Exhibit(
        "source and target share one table of learnt positions",
        "Right for sinusoids, which are the same for both and do not learn.",
        Transformer.__init__,
        'config.positions == "learned"',
        "False",
    ),
    Exhibit(
        "learnt positions of a Transformer begin fifty times smaller than its tokens",
        "0.02 is GPT-2's. Here tokens are multiplied by sqrt(C), and positions beside them would not be seen.",
        Transformer._positions,
        "std = 1.0 if config.scale_embeddings else config.d_model**-0.5",
        "std = 0.02",
    ),
    Exhibit(
        "learnt positions of a GPT begin fifty times larger than its tokens",
        "Then a model sees where a token is, and hardly which.",
        GPT.__init__,
        "(1.0, STD, STD)",
        "(1.0, STD, 1.0)",
    ),
)

EXHIBITS = (*ACTIVATIONS_OF_OTHERS, *BEGINNING, *DROPOUT, *GPTS, *BERTS, *T5S, *DATA)
