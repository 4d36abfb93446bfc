"""The wrong answers of lesson 12."""

from minitransformer.exercises.exercise import Mistake


def encoder_without_identity_at_ffn(dy, cache):
    """da through the network alone."""
    back_attention, back_norm_1, back_feed_forward, back_norm_2 = cache
    da = back_feed_forward(back_norm_2(dy))
    ds = back_norm_1(da)
    return ds + sum(back_attention(ds)), da


def encoder_without_identity_at_attention(dy, cache):
    """dx through the attention alone."""
    back_attention, back_norm_1, back_feed_forward, back_norm_2 = cache
    ds = back_norm_2(dy)
    da = ds + back_feed_forward(ds)
    return sum(back_attention(back_norm_1(da))), da


def encoder_with_queries_only(dy, cache):
    """As if keys and values came from elsewhere."""
    back_attention, back_norm_1, back_feed_forward, back_norm_2 = cache
    ds = back_norm_2(dy)
    da = ds + back_feed_forward(ds)
    ds = back_norm_1(da)
    dquery, _, _ = back_attention(ds)
    return ds + dquery, da


def encoder_without_values(dy, cache):
    """Through the weights alone."""
    back_attention, back_norm_1, back_feed_forward, back_norm_2 = cache
    ds = back_norm_2(dy)
    da = ds + back_feed_forward(ds)
    ds = back_norm_1(da)
    dquery, dkey, _ = back_attention(ds)
    return ds + dquery + dkey, da


def encoder_with_identity_past_the_norm(dy, cache):
    """The gradient of a, added behind the norm."""
    back_attention, back_norm_1, back_feed_forward, back_norm_2 = cache
    ds = back_norm_2(dy)
    da = ds + back_feed_forward(ds)
    return da + sum(back_attention(back_norm_1(da))), da


def encoder_with_ffn_past_the_norm(dy, cache):
    """The network is given dy."""
    back_attention, back_norm_1, back_feed_forward, back_norm_2 = cache
    da = back_norm_2(dy) + back_feed_forward(dy)
    ds = back_norm_1(da)
    return ds + sum(back_attention(ds)), da


def encoder_as_pre_norm(dy, cache):
    """Each norm behind its piece, on the way back."""
    back_attention, back_norm_1, back_feed_forward, back_norm_2 = cache
    da = dy + back_norm_2(back_feed_forward(dy))
    return da + back_norm_1(sum(back_attention(da))), da


def half_of_decoder_layer(dy, cache):
    """As far as the sum behind the cross-attention, where the memory comes in -> dc and that sum's gradient."""
    _, _, _, back_norm_2, back_feed_forward, back_norm_3 = cache
    ds = back_norm_3(dy)
    dc = ds + back_feed_forward(ds)
    return dc, back_norm_2(dc)


def rest_of_decoder_layer(da, cache):
    """From the output of the self-attention's norm."""
    back_self, back_norm_1, *_ = cache
    ds = back_norm_1(da)
    return ds + sum(back_self(ds))


def memory_from_keys(dy, cache):
    """dmemory without its second path."""
    _, ds = half_of_decoder_layer(dy, cache)
    dquery, dkey, _ = cache[2](ds)
    return rest_of_decoder_layer(ds + dquery, cache), dkey


def memory_from_values(dy, cache):
    """dmemory without its first path."""
    _, ds = half_of_decoder_layer(dy, cache)
    dquery, _, dvalue = cache[2](ds)
    return rest_of_decoder_layer(ds + dquery, cache), dvalue


def without_identity_at_cross(dy, cache):
    """As if nothing went past the cross-attention."""
    _, ds = half_of_decoder_layer(dy, cache)
    dquery, dkey, dvalue = cache[2](ds)
    return rest_of_decoder_layer(dquery, cache), dkey + dvalue


def without_queries_at_cross(dy, cache):
    """As if the queries of the cross-attention were constants."""
    _, ds = half_of_decoder_layer(dy, cache)
    _, dkey, dvalue = cache[2](ds)
    return rest_of_decoder_layer(ds, cache), dkey + dvalue


def cross_past_the_norm(dy, cache):
    """The cross-attention is given dc."""
    dc, ds = half_of_decoder_layer(dy, cache)
    dquery, dkey, dvalue = cache[2](dc)
    return rest_of_decoder_layer(ds + dquery, cache), dkey + dvalue


def self_attention_with_queries_only(dy, cache):
    """As if the self-attention were a cross-attention."""
    back_self, back_norm_1, back_cross, *_ = cache
    _, ds = half_of_decoder_layer(dy, cache)
    dquery, dkey, dvalue = back_cross(ds)
    ds = back_norm_1(ds + dquery)
    return ds + back_self(ds)[0], dkey + dvalue


def memory_from_the_last_layer(dy, backs):
    """The first part that is met, and no other."""
    dy, dmemory = backs[-1](dy)
    for back_layer in reversed(backs[:-1]):
        dy, _ = back_layer(dy)
    return dy, dmemory


def memory_overwritten(dy, backs):
    """= where += was meant."""
    for back_layer in reversed(backs):
        dy, dmemory = back_layer(dy)
    return dy, dmemory


def memory_as_a_mean(dy, backs):
    """Divided by the number of layers."""
    dmemory = 0.0
    for back_layer in reversed(backs):
        dy, part = back_layer(dy)
        dmemory = dmemory + part / len(backs)
    return dy, dmemory


def from_the_first_layer(dy, backs):
    """In the order of the forward."""
    dmemory = 0.0
    for back_layer in backs:
        dy, part = back_layer(dy)
        dmemory = dmemory + part
    return dy, dmemory


def each_from_the_top(dy, backs):
    """The same dy for all layers."""
    parts = [back_layer(dy) for back_layer in backs]
    return parts[0][0], sum(part for _, part in parts)


ENCODER_LAYER = (
    Mistake(
        "the path past the feed-forward network is forgotten",
        "How often is a used in the forward? Which of its uses is not in your da?",
        encoder_without_identity_at_ffn,
    ),
    Mistake(
        "the path past the attention is forgotten",
        "x is an input of the attention, and where else does it stand?",
        encoder_without_identity_at_attention,
    ),
    Mistake(
        "the attention gives x only the gradient of its queries",
        "The attention is called with x, x, x. To how many of its inputs does x belong?",
        encoder_with_queries_only,
    ),
    Mistake(
        "the gradient of the values does not come back to x",
        "The attention is called with x, x, x. What are the weights' means taken of?",
        encoder_without_values,
    ),
    Mistake(
        "the path past the attention does not go through the norm",
        "Where does x enter the sum: before the norm, or behind it? Has da been through that norm?",
        encoder_with_identity_past_the_norm,
    ),
    Mistake(
        "the feed-forward network gets the gradient of y, and not that of the sum",
        "f is a part of the sum a + f, and the sum goes into the norm. Which gradient has reached the sum?",
        encoder_with_ffn_past_the_norm,
    ),
    Mistake(
        "this is the backward of a pre-norm layer",
        "In this forward, what goes into each norm: the input of a piece, or a sum?",
        encoder_as_pre_norm,
    ),
)

DECODER_LAYER = (
    Mistake(
        "the memory gets the gradient of its keys alone",
        "The cross-attention is called with a, memory, memory. What else is made of the memory?",
        memory_from_keys,
    ),
    Mistake(
        "the memory gets the gradient of its values alone",
        "The cross-attention is called with a, memory, memory. What else is made of the memory?",
        memory_from_values,
    ),
    Mistake(
        "the path past the cross-attention is forgotten",
        "a is an input of the cross-attention, and where else does it stand?",
        without_identity_at_cross,
    ),
    Mistake(
        "the gradient of the cross-attention's queries is forgotten",
        "Who asks the memory? Does a matter for the answer only by standing beside it in the sum?",
        without_queries_at_cross,
    ),
    Mistake(
        "the cross-attention gets the gradient of c, and not that of the sum",
        "r is a part of the sum a + r, and the sum goes into the norm. Which gradient has reached the sum?",
        cross_past_the_norm,
    ),
    Mistake(
        "the self-attention gives x only the gradient of its queries",
        "The self-attention is called with x, x, x. To how many of its inputs does x belong?",
        self_attention_with_queries_only,
    ),
)

DECODER = (
    Mistake(
        "the memory gets the last layer's part alone",
        "Which of the layers read the memory?",
        memory_from_the_last_layer,
    ),
    Mistake(
        "each layer's part of dmemory takes the place of the one before",
        "The memory was used once by every layer. What do the gradients of several uses make: the last of them?",
        memory_overwritten,
    ),
    Mistake(
        "the parts of dmemory are averaged",
        "If every layer would gain 1 by a change of the memory, how much would be gained in all?",
        memory_as_a_mean,
    ),
    Mistake(
        "the layers are gone through in the order of the forward",
        "dy is the gradient of what the last layer returned. Which layer can take it?",
        from_the_first_layer,
    ),
    Mistake(
        "every layer gets the same dy",
        "Layer 1 did not return what the loss was computed of, but the input of layer 2. Whose gradient is that?",
        each_from_the_top,
    ),
)
