"""Published bugs in layers, in models, and in reading the weights of others."""

from tests.museum import NUMPY
from tests.museum.planting import Exhibit

EXHIBITS = (
    Exhibit(
        "the balance loss of the experts is computed and never added",
        "The loss on the screen looks the same. Only the experts that nobody chooses show it, much later.",
        {
            "layers:MixtureOfExperts._router_backward": (
                "dp[rows] += routing.auxiliary_backward",
                "routing.auxiliary_backward",
            )
        },
        "jingyaogong/minimind #140",
    ),
    Exhibit(
        "keys are used for values",
        "A line copied and not changed. Forward and backward agree; the value projection silently never moves.",
        {
            "layers:SelfAttention.forward": (
                "q, k, v = parts(qkv, self.widths)",
                "q, k, v = (parts(qkv, self.widths)[i] for i in (0, 1, 1))",
            ),
            "layers:SelfAttention.backward": ("merge_heads(dq, dk, dv)", "merge_heads(dq, dk + dv, 0.0 * dv)"),
        },
        "awslabs/sockeye #731",
    ),
    Exhibit(
        "cross-attention returns its two gradients in the wrong order",
        "Where source and target are equally long, as in the copy task, nothing complains.",
        {"layers:CrossAttention.backward": ("return dx, dmemory", "return dmemory, dx")},
        NUMPY,
    ),
    Exhibit(
        "cross-attention takes queries and keys from the encoder and values from the decoder",
        "Who gives Q, and who K and V? The values carry what is seen: here the decoder's own future.",
        {
            "layers:CrossAttention.forward": (
                """q, cache_q = self.q.forward(x)
    kv, cache_kv = self.kv.forward(memory)  # (B, S, 2 G D)
    k, v = parts(kv, self.widths[1:])""",
                """q, cache_q = self.q.forward(memory)
    kv, cache_kv = self.kv.forward(memory)
    k, v = parts(kv, self.widths[1:])[0], parts(self.kv(x), self.widths[1:])[1]""",
            )
        },
        NUMPY,
    ),
    Exhibit(
        "the text says post-norm and the code does pre-norm",
        "The most repeated question of all. Forward and backward agree, and both variants learn.",
        {
            "layers:Residual.forward": ('if self.placement == "post":', 'if self.placement == "pre":'),
            "layers:Residual.backward": ('if self.placement == "post":', 'if self.placement == "pre":'),
        },
        "harvardnlp/annotated-transformer #1",
    ),
    Exhibit(
        "the norm is taken of the sub-layer alone and not of the sum",
        "x + Norm(Sublayer(x)) is neither of the two equations, and learns as well.",
        {
            "layers:Residual.forward": (
                "y, cache_norm = self.norm.forward(x + d)",
                "n, cache_norm = self.norm.forward(d)\n        y = x + n",
            ),
            "layers:Residual.backward": ("dx = dsum + dx", "dx = dy + dx"),
        },
        "harvardnlp/annotated-transformer #110, proposed as a correction",
    ),
    Exhibit(
        "pre-norm adds the normalised token instead of the token itself",
        "Then there is no clear path. Forward and backward agree.",
        {
            "layers:Residual.forward": ("y = x + d", "y = n + d"),
            "layers:Residual.backward": (
                "dx = dy + self.norm.backward(dn, cache.norm)",
                "dx = self.norm.backward(dy + dn, cache.norm)",
            ),
        },
        "Howuhh/faster-trajectory-transformer #3",
    ),
    Exhibit(
        "all sub-layers share one dropout mask",
        "Each sub-layer drew from a generator in the same state.",
        {
            "layers:Dropout.forward": (
                "dropout(x, self.rate, rng)",
                'dropout(x, self.rate, __import__("copy").deepcopy(rng))',
            )
        },
        NUMPY,
    ),
    Exhibit(
        "LayerNorm's beta gets no gradient",
        "A parameter that silently never moves. Has every one moved after the first step?",
        {"layers:LayerNorm.backward": ("self.beta.add_grad(dbeta)", "pass")},
        "harvard-edge/cs249r_book #1504",
    ),
    Exhibit(
        "the N layers of the encoder are one layer N times",
        "[layer] * N repeats a reference. Count the parameters.",
        {
            "models.build:Builder.encoder": (
                "[self.encoder_layer() for _ in range(self.config.num_layers)]",
                "[self.encoder_layer()] * self.config.num_layers",
            )
        },
        "espnet/espnet #1278",
    ),
    Exhibit(
        "tied matrices are three copies of one",
        "Equal at the start, and each goes its own way from the first step on.",
        {
            "models:Transformer._embedding_matrices": (
                "return source, target, output",
                "return [Parameter(E.data.copy()) for E in (source, target, output)]",
            )
        },
        "facebookresearch/lingua #74",
    ),
    Exhibit(
        "a GPT without its causal mask",
        "Each token sees the one it is to predict: training looks wonderful, and nothing can be generated.",
        {"models:GPT.features": ("causal_mask(ids.shape[1])", "None")},
        "huggingface/transformers #48745",
    ),
    Exhibit(
        "a BERT lets all see its padding",
        "A mask that is built and not handed over.",
        {"models:BERT.features": ("padding_mask(to_device(ids), self.config.padding)", "None")},
        "yg211/bert_nli #3",
    ),
    Exhibit(
        "T5's logits are not scaled",
        "A constant factor: the most likely token stays the same, and no probability does.",
        {
            "models.since_2017.build:LaterBuilder.output": (
                "self.config.d_model**-0.5 if self.config.scale_output else 1.0",
                "1.0",
            )
        },
        "ml-explore/mlx-examples #591",
    ),
    Exhibit(
        "a decoded token is turned as if it were the first",
        "Training never sees it: there every sequence starts at 0.",
        {"layers:RotaryPositions._tables": ("slice(start, start + x.shape[2])", "slice(0, x.shape[2])")},
        "pytorch/executorch #2010",
    ),
    Exhibit(
        "the last bias is given out for another start",
        "A cache whose key has forgotten an argument.",
        {"layers:AlibiPositions.bias": ("if asked != (T, S, start):", "if asked is None or asked[:2] != (T, S):")},
        "lucidrains/rotary-embedding-torch #11",
    ),
    Exhibit(
        "every rank adds the output's bias",
        "The bias belongs to the sum, not to each of its terms: with N ranks it would be added N times.",
        {
            "support.tensor_parallel:RowLinear.forward": (
                "y += self.b.data",
                "y += self.ranks.size * self.b.data",
            )
        },
        "huggingface/text-generation-inference #1036",
    ),
    Exhibit(
        "the source is reversed together with its padding",
        "Then short sources begin with padding, and their tokens are not where the mask says.",
        {
            "models.before_2017.recurrent:reversed_order": (
                "np.where(places < lengths, lengths - 1 - places, places)",
                "np.broadcast_to(places[::-1], ids.shape)",
            )
        },
        "keras-team/keras #7244",
    ),
)
