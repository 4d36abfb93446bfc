"""Bugs of incremental decoding: the KV cache, the positions of new tokens, and the masks."""

from minitransformer.decoding import incremental
from minitransformer.exercises.planting import Exhibit
from minitransformer.layers import attention, kv_cache

EXHIBITS = (
    Exhibit(
        "keys and values are written one place too late",
        "The first place of the memory stays as it was found, and the newest token cannot see itself.",
        kv_cache.KVCache.append,
        "self.k[:, :, start:end], self.v[:, :, start:end] = k, v",
        "self.k[:, :, start + 1 : end + 1], self.v[:, :, start + 1 : end + 1] = k, v",
    ),
    Exhibit(
        "every new token overwrites the one before it",
        "The length is never counted up. What has a model read that remembers one token?",
        kv_cache.KVCache.append,
        "self.length = end",
        "pass",
    ),
    Exhibit(
        "the values stay where they are when rows are selected",
        "Keys of one sequence, values of another: the weights are right, what they weigh is not.",
        kv_cache.KVCache.select,
        "self.k, self.v = self.k[rows], self.v[rows]",
        "self.k = self.k[rows]",
    ),
    Exhibit(
        "what was read of the source is not selected with the rest",
        "Within one source a beam never sees it. It takes two sources, and rows that change sides.",
        incremental.TransformerState.select,
        "(*self.kv_caches, *self.memory_kv_caches)",
        "self.kv_caches",
    ),
    Exhibit(
        "the padding of the source is not selected with the rest",
        "One row then looks at padding, or misses its last words, by the length of another's source.",
        incremental.TransformerState.select,
        "self.source_allowed[kept], self.allowed[kept]",
        "self.source_allowed, self.allowed[kept]",
    ),
    Exhibit(
        "new tokens stand at position 0 again",
        "A sequence of one token is at its beginning, unless somebody says where it starts.",
        incremental.TransformerState.extend,
        "start=start",
        "start=0",
    ),
    Exhibit(
        "texts padded on the left begin at the position of their padding",
        "The first word of a short text stands where the longest of the batch has its fourth.",
        incremental.GPTState.extend,
        "start = start - self.padding",
        "pass",
    ),
    Exhibit(
        "the lengths of the padding on the left are not selected with the texts",
        "A row takes over the text of another, and its own beginning.",
        incremental.GPTState.select,
        "self.padding = self.padding[rows]",
        "pass",
    ),
    Exhibit(
        "new keys are turned as if they stood at position 0",
        "With RoPE the angle is all that a key knows of its place. Does decoding equal the whole model?",
        attention.SelfAttention.extend,
        "self.positions.rotate(k, start)",
        "self.positions.rotate(k)",
    ),
    Exhibit(
        "the distances of new queries are counted from position 0",
        "With ALiBi or T5's buckets a query after 9 tokens takes itself for the first.",
        attention.SelfAttention.extend,
        "start + q.shape[2], start)",
        "start + q.shape[2])",
    ),
    Exhibit(
        "tokens that are read at once see each other's future",
        "One new token needs no mask, a prompt of several does.",
        incremental.allowed_for_new,
        "None if count == 1 else causal_mask(kv_cache.length + count)[:, :, kv_cache.length :]",
        "None",
    ),
    Exhibit(
        "the mask of tokens read at once begins at the first position",
        "Rows 0 to n of the causal mask instead of the last n: the new tokens cannot see what was read before.",
        incremental.allowed_for_new,
        "[:, :, kv_cache.length :]",
        "[:, :, :count]",
    ),
    Exhibit(
        "decoding sees the padding of the source",
        "Training had a mask there. Answers change with the longest source of the batch.",
        incremental.TransformerState.extend,
        "allowed, self.source_allowed)",
        "allowed, None)",
    ),
    Exhibit(
        "decoding sees the padding among the tokens",
        "The whole model does not. Most models never say padding; a random one does.",
        incremental.TransformerState.extend,
        "model.target_allowed(ids, start)",
        "True",
    ),
    Exhibit(
        "decoding takes every new token for the first",
        "What is special about the first position must stay special to it.",
        incremental.TransformerState.extend,
        "model.target_allowed(ids, start)",
        "model.target_allowed(ids)",
    ),
    Exhibit(
        "decoding forgets the scale of the scores",
        "A default of a function stood in for what the layer was told.",
        attention.SelfAttention.extend,
        ", bias, self.scale)",
        ", bias)",
    ),
    Exhibit(
        "decoding reads the prediction at the first position",
        "The logits at position 0 answer what comes first, at every step again.",
        incremental.TransformerState.extend,
        "y[:, -1:]",
        "y[:, :1]",
    ),
)
