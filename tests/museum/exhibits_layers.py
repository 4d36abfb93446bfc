"""Bugs in who calls what with what: `minitransformer.layers` and `minitransformer.models`."""

from minitransformer import layers as L
from minitransformer.exercises.planting import Exhibit
from minitransformer.layers import losses, stack
from minitransformer.layers.stack import LayerStack
from minitransformer.models import Transformer, TransformerConfig

ATTENTION = (
    Exhibit(
        "keys are used for values",
        "A line copied and not changed. Forward and backward agree; the value projection silently never moves.",
        L.SelfAttention.forward,
        "q, k, v = parts(qkv, self.widths)",
        "q, k, v = (parts(qkv, self.widths)[i] for i in (0, 1, 1))",
        also=((L.SelfAttention.backward, "merge_heads(dq, dk, dv)", "merge_heads(dq, dk + dv, 0.0 * dv)"),),
    ),
    Exhibit(
        "the gradients of queries and keys change places",
        "They have one shape. Return them in the order in which the inputs came.",
        L.SelfAttention.backward,
        "merge_heads(dq, dk, dv)",
        "merge_heads(dk, dq, dv)",
    ),
    Exhibit(
        "cross-attention returns its two gradients in the wrong order",
        "Published. Where source and target are equally long, as in the copy task, nothing complains.",
        L.CrossAttention.backward,
        "return dx, dmemory",
        "return dmemory, dx",
    ),
    Exhibit(
        "cross-attention takes queries and keys from the encoder and values from the decoder",
        "Published. Who gives Q, and who K and V? The values carry what is seen: here the decoder's own future.",
        L.CrossAttention.forward,
        """q, cache_q = self.q.forward(x)
    kv, cache_kv = self.kv.forward(memory)  # (B, S, 2 G D)
    k, v = parts(kv, self.widths)""",
        """q, cache_q = self.q.forward(memory)
    kv, cache_kv = self.kv.forward(memory)
    k, v = parts(kv, self.widths)[0], parts(self.kv(x), self.widths)[1]""",
    ),
    Exhibit(
        "cross-attention forgets its mask",
        "Is there anything in the output that the padding of the source can change?",
        L.CrossAttention.forward,
        "self._attend(q, k, v, allowed, rng)",
        "self._attend(q, k, v, None, rng)",
    ),
    Exhibit(
        "attention is not told of its dropout",
        "A rate that is set and has no effect. Do two seeds give two losses?",
        L.SelfAttention._attend,
        '"dropout_rate": self.dropout_rate, "rng": rng',
        '"dropout_rate": 0.0, "rng": None',
    ),
)

RESIDUALS = (
    Exhibit(
        "the clear path of pre-norm is left out of the backward",
        "The one thing pre-norm is for: the gradient that reaches the first layer unchanged.",
        L.Residual.backward,
        "dx = dy + self.norm.backward(dn, cache.norm)",
        "dx = self.norm.backward(dn, cache.norm)",
    ),
    Exhibit(
        "the text says post-norm and the code does pre-norm",
        "The most repeated question of all. Forward and backward agree, and both variants learn.",
        L.Residual.forward,
        'if self.placement == "post":',
        'if self.placement == "pre":',
        also=((L.Residual.backward, 'if self.placement == "post":', 'if self.placement == "pre":'),),
    ),
    Exhibit(
        "the norm is taken of the sub-layer alone and not of the sum",
        "x + Norm(Sublayer(x)) is neither of the two equations, and learns as well.",
        L.Residual.forward,
        "y, cache_norm = self.norm.forward(x + d)",
        "n, cache_norm = self.norm.forward(d)\n        y = x + n",
        also=((L.Residual.backward, "dx = dsum + dx", "dx = dy + dx"),),
    ),
    Exhibit(
        "pre-norm adds the normalised token instead of the token itself",
        "Then there is no clear path. Forward and backward agree.",
        L.Residual.forward,
        "y = x + d",
        "y = n + d",
        also=(
            (
                L.Residual.backward,
                "dx = dy + self.norm.backward(dn, cache.norm)",
                "dx = self.norm.backward(dy + dn, cache.norm)",
            ),
        ),
    ),
    Exhibit(
        "dropout falls on the sum instead of the sub-layer",
        "Section 5.4: to the output of each sub-layer, before it is added. Forward and backward agree.",
        L.Residual.forward,
        """d, cache_dropout = self.dropout.forward(s, rng)
        y, cache_norm = self.norm.forward(x + d)""",
        """d, cache_dropout = self.dropout.forward(x + s, rng)
        y, cache_norm = self.norm.forward(d)""",
        also=((L.Residual.backward, "dx = dsum + dx", "dx = ds + dx"),),
    ),
    Exhibit(
        "the weights of self-attention are dropped at the rate of the residuals",
        "Three rates, three places. A test with one rate for all cannot tell them apart.",
        stack.make_self_attention,
        "config.attention_dropout",
        "config.dropout",
    ),
    Exhibit(
        "the weights of cross-attention are dropped at the rate of the residuals",
        "The same mistake in the second of two functions that look alike.",
        stack.make_cross_attention,
        "config.attention_dropout",
        "config.dropout",
    ),
    Exhibit(
        "the feed-forward network is dropped at the rate of the residuals",
        "And in the third.",
        stack.make_feed_forward,
        "config.ffn_dropout",
        "config.dropout",
    ),
    Exhibit(
        "all sub-layers share one dropout mask",
        "Published. Each sub-layer drew from a generator in the same state.",
        L.Dropout.forward,
        "dropout(x, self.rate, rng)",
        'dropout(x, self.rate, __import__("copy").deepcopy(rng))',
    ),
)

PARAMETERS = (
    Exhibit(
        "a gradient is assigned where it should be added",
        "Right for a layer that is used once. Use it twice before you call it done.",
        L.Linear.backward,
        "self.W.add_grad(dW)",
        "self.W.grad[...] = dW",
    ),
    Exhibit(
        "a gradient gets a new array instead of new values",
        "a = a + b makes a new array, a += b does not: the optimiser looks at the old one, and W silently never moves.",
        L.Linear.backward,
        "self.W.add_grad(dW)",
        "self.W.grad = self.W.grad + dW",
    ),
    Exhibit(
        "LayerNorm's beta gets no gradient",
        "A parameter that silently never moves. Has every one moved after the first step?",
        L.LayerNorm.backward,
        "self.beta.grad += dbeta",
        "pass",
    ),
    Exhibit(
        "the shared matrix loses the gradient of its use as output",
        "A tied matrix has three uses, and its gradient is the sum of three.",
        L.OutputProjection.backward,
        "self._add_dE(dlogits_rows, rows)",
        "pass",
    ),
    Exhibit(
        "the output projection overwrites the shared gradient",
        "It is the first of the three uses to come in the backward pass, so a single step never shows it.",
        L.OutputProjection.backward,
        "self._add_dE(dlogits_rows, rows)",
        "self.E.grad[...] = dlogits_rows.T @ rows",
    ),
    Exhibit(
        "embeddings are not multiplied by sqrt(d_model)",
        "With entries of size 1 / sqrt(d_model) the positions then drown the words.",
        L.Embedding.__init__,
        "math.sqrt(E.data.shape[1])",
        "1.0",
    ),
    Exhibit(
        "positions are never added",
        "Then attention sees a bag of words: permute the source, and only the order of the memory changes.",
        L.InputEmbedding.forward,
        "self.positions.forward(x, start=start)",
        "(x, None)",
    ),
    Exhibit(
        "the backward of the input embedding skips its dropout",
        "It is the last step of the backward pass, and the one most easily forgotten.",
        L.InputEmbedding.backward,
        "dx = self.dropout.backward(dy, cache_dropout)",
        "dx = dy",
    ),
    Exhibit(
        "the feed-forward network's backward forgets the ReLU",
        "Every unit learns, also those that were silent.",
        L.FeedForward.backward,
        "dh = activate_backward(da, cache.activation)",
        "dh = da",
    ),
)

STACKS = (
    Exhibit(
        "the memory gets its gradient from one decoder layer only",
        "Every decoder layer reads the memory; the gradients of all of them are added.",
        L.Decoder.backward,
        "dmemory = dmemory + dmemory_layer",
        "dmemory = dmemory_layer",
    ),
    Exhibit(
        "the encoder's backward skips the final norm",
        "Only with pre-norm is there one. Check every position of every switch.",
        LayerStack.backward,
        "dy = self.norm.backward(dy, cache.norm)",
        "pass",
    ),
    Exhibit(
        "the N layers of the encoder are one layer N times",
        "[layer] * N repeats a reference. Count the parameters.",
        LayerStack.__init__,
        "for _ in range(config.num_layers)\n    ]",
        "for _ in range(1)\n    ] * config.num_layers",
    ),
    Exhibit(
        "the decoder's layers run backward in the order of the forward",
        "Each layer gets a gradient that belongs to another, and a cache that belongs to a third.",
        L.Decoder.backward,
        "for layer in reversed(self.layers):",
        "for layer in self.layers:",
    ),
    Exhibit(
        "pre-norm ends without a norm",
        "The sum of all sub-layers has never been normalised when it meets the output matrix.",
        TransformerConfig.has_final_norm.fget,
        'return self.norm == "pre" if self.final_norm is None else self.final_norm',
        "return bool(self.final_norm)",
    ),
)

MODELS = (
    Exhibit(
        "the decoder may attend to the padding of the source",
        "The mask of the encoder is needed twice. Pad the source: does any logit change?",
        Transformer.decode,
        "allowed, self._source_allowed(source), rng)",
        "allowed, None, rng)",
    ),
    Exhibit(
        "the encoder may attend to padding",
        "The same sentence means something else in a batch with a longer one.",
        Transformer.encode,
        "self.encoder.forward(x, self._source_allowed(source), rng)",
        "self.encoder.forward(x, None, rng)",
    ),
    Exhibit(
        "the decoder may attend to the padding of the target",
        "Not to be seen while padding comes last, as the causal mask hides it from every word before.",
        Transformer.decode,
        "causal_mask(target.shape[1]) & self.target_allowed(target)",
        "causal_mask(target.shape[1])",
    ),
    Exhibit(
        "the encoder gets no gradient",
        "The decoder learns a language model all the same, and the loss falls for a while.",
        Transformer.features_backward,
        "self.encode_backward(dmemory, cache.encode)",
        "pass",
    ),
    Exhibit(
        "the shared matrix loses the gradient of its use for the source",
        "Two of three uses are there, the words of the source still move a little: who would notice?",
        Transformer.encode_backward,
        "self.source_embedding.backward(dx, cache.embedding)",
        "pass",
    ),
    Exhibit(
        "the target is looked up in the source's table",
        "Right while both are one matrix; otherwise the target's own silently never moves.",
        Transformer.decode,
        "self.target_embedding.forward(target, rng)",
        "self.source_embedding.forward(target, rng)",
        also=(
            (
                Transformer.decode_backward,
                "self.target_embedding.backward(dy, cache.embedding)",
                "self.source_embedding.backward(dy, cache.embedding)",
            ),
        ),
    ),
    Exhibit(
        "tied matrices are three copies of one",
        "Equal at the start, and each goes its own way from the first step on.",
        Transformer._embedding_matrices,
        "return source, target, output",
        "return [Parameter(E.data.copy()) for E in (source, target, output)]",
    ),
)

BLOCKWISE_LOSS = (
    Exhibit(
        "blocks of the loss overlap by a token",
        "The last token of each block is the first of the next: its gradient is there twice.",
        losses._blocks,
        "counted[start : start + size]",
        "counted[max(start - 1, 0) : start + size]",
    ),
    Exhibit(
        "the loss leaves out its last, shorter block",
        "Right in every example whose number of tokens is a multiple of the block's.",
        losses._blocks,
        "range(0, len(counted), size)",
        "range(0, max(len(counted) - size + 1, 1), size)",
    ),
    Exhibit(
        "every block of the loss weighs as much as any other",
        "A mean of means. The last block is shorter, and its tokens count for more.",
        losses.blockwise_loss,
        "loss_fn.num_terms(block) / total",
        "1.0 / max(1, -(-total * model.config.vocab_size // max_logits))",
    ),
    Exhibit(
        "the gradient of a block is not weighted by its share",
        "The loss is right, and the gradient is too large by the number of blocks.",
        losses.blockwise_loss,
        "weight * share",
        "weight",
    ),
    Exhibit(
        "the last block of the loss overwrites the gradient of the others",
        "The shared matrix learns from a few tokens of each batch.",
        L.OutputProjection._add_dE,
        "dE[rows] += ",
        "dE[rows] = ",
    ),
    Exhibit(
        "gradients of tokens move up where padding was left out",
        "The rows were gathered, and are not scattered back. Without padding nothing is wrong.",
        losses.blockwise_loss,
        "dy[rows] = dy_rows",
        "dy[: len(dy_rows)] = dy_rows",
    ),
    Exhibit(
        "padding counts in the mean of a loss in blocks",
        "M is the number of targets, not of rows.",
        losses.blockwise_loss,
        "max(loss_fn.num_terms(targets), 1)",
        "targets.size",
    ),
)

EXHIBITS = (*BLOCKWISE_LOSS, *ATTENTION, *RESIDUALS, *PARAMETERS, *STACKS, *MODELS)
