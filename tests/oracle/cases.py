"""The subjects that PyTorch has as well. A reference file has some of them; the live test compares them all."""

from itertools import product

from minitransformer.functional.since_2017.activations import ACTIVATIONS, CONV_ACTIVATIONS
from minitransformer.gradcheck.subjects import SUBJECTS, Sizes
from minitransformer.gradcheck.subjects.table import MASKS, ODD_MASKS
from tests.oracle import recurrent, theirs

REFERENCE_SIZES = Sizes(B=3, T=5, S=6, H=2, D=4, F=7, V=11)
USUAL_MASKS = [mask for mask in MASKS if mask != "empty_row"]  # PyTorch gives NaN where a query may attend to nothing
NORMS = ("post", "pre")  # those of torch.nn.Transformer

# {name of the subject: PyTorch's side}
PARITY = {
    "linear": theirs.linear_function,
    "layer_norm": theirs.layer_norm_function,
    "attention bias=True scale=1.0": theirs.biased_attention,
    "attention bias=True scale=0.5": theirs.biased_attention,
    "Linear": theirs.linear,
    "Linear bias=False": theirs.linear,
    "LayerNorm": theirs.layer_norm,
    "LayerNorm eps=0.3": theirs.layer_norm,
    "RMSNorm": theirs.rms_norm,
    "RMSNorm eps=0.3": theirs.rms_norm,
    "Embedding": theirs.embedding,
    "OutputProjection": theirs.output_projection,
    "FeedForward dropout=0.0": theirs.feed_forward,
    "FeedForward bias=False": theirs.feed_forward,
    "EncoderLayer activation=gelu norm_eps=0.1": theirs.encoder_layer,
    "Transformer logits": theirs.transformer,
    "Transformer padding=False": theirs.transformer,
    "Transformer final_norm=True": theirs.transformer,
    "Transformer norm=post tied=False final_norm=True": theirs.transformer,
    "Transformer norm=pre tied=False final_norm=False": theirs.transformer,
}
PARITY |= dict.fromkeys((*ACTIVATIONS, "tanh"), theirs.activation)
PARITY |= {f"softmax mask={mask}": theirs.softmax for mask in USUAL_MASKS}
PARITY |= {f"attention mask={mask}": theirs.attention for mask in (*MASKS, *ODD_MASKS)}
PARITY |= {f"tiled_attention mask={mask}": theirs.tiled_attention for mask in (*MASKS, *ODD_MASKS)}
PARITY |= {f"attention groups={groups}": theirs.grouped_attention for groups in (1, 3)}
PARITY |= dict.fromkeys(
    (name for name in SUBJECTS if name.startswith("tiled_attention pattern=")), theirs.tiled_attention
)
PARITY |= {
    f"ActivatedFeedForward activation={name} bias={bias}": theirs.feed_forward
    for name, bias in product(ACTIVATIONS, (True, False))
}
PARITY |= {"glu": theirs.activation, "conv1d dilation=7": theirs.conv1d_function}
PARITY |= {
    f"conv1d causal={causal} dilation={dilation} padding={padding}": theirs.conv1d_function
    for causal, dilation, padding in product((True, False), (1, 2), (False, True))
}
PARITY |= {f"conv1d kernel={kernel} causal=False": theirs.conv1d_function for kernel in (1, 4)}
PARITY |= {
    f"Conv1d causal={causal} padding={padding}": theirs.conv1d for causal, padding in product((True, False), repeat=2)
}
PARITY["Conv1d bias=False dilation=2"] = theirs.conv1d
PARITY |= {f"ActivatedConv1d activation={name}": theirs.activated_conv1d for name in CONV_ACTIVATIONS}
for smoothing, padding in product((0.0, 0.1), (False, True)):
    PARITY[f"cross_entropy smoothing={smoothing} padding={padding}"] = theirs.cross_entropy
PARITY |= {"token_log_probs": theirs.token_log_probs, "dpo": theirs.dpo}
for mean_over, penalty in product(("answers", "tokens"), (False, True)):
    PARITY[f"grpo mean_over={mean_over} penalty={penalty}"] = theirs.grpo
for mask in USUAL_MASKS:
    PARITY[f"SelfAttention mask={mask}"] = theirs.self_attention
    PARITY[f"CrossAttention mask={mask}"] = theirs.cross_attention
for norm, mask in product(NORMS, USUAL_MASKS):  # dropout is switched off on both sides
    PARITY[f"EncoderLayer norm={norm} dropout=0.3 mask={mask}"] = theirs.encoder_layer
    PARITY[f"DecoderLayer norm={norm} dropout=0.3 mask={mask}"] = theirs.decoder_layer
for norm, tied, smoothing in product(NORMS, (True, False), (0.0, 0.1)):
    PARITY[f"Transformer norm={norm} tied={tied} smoothing={smoothing} dropout=0.0"] = theirs.transformer
for name in ("lstm", "gru"):
    PARITY |= {f"{name} reverse=False padding={padding}": recurrent.function for padding in (True, False)}
for name, bidirectional in product(("LSTM", "GRU"), (True, False)):
    PARITY[f"{name} bidirectional={bidirectional} dropout=0.0"] = recurrent.layer
    PARITY[f"{name} bidirectional={bidirectional} padding=False initial_state=False"] = recurrent.layer

# each kind once, with its masks on: enough to see every backward pass, and small enough to keep
REFERENCE_CASES = (
    "Linear",
    "LayerNorm",
    "relu",
    "softmax mask=both",
    "attention mask=random",
    "FeedForward dropout=0.0",
    "Embedding",
    "cross_entropy smoothing=0.0 padding=True",
    "cross_entropy smoothing=0.1 padding=True",
    "SelfAttention mask=both",
    "CrossAttention mask=padding",
    "EncoderLayer norm=post dropout=0.3 mask=both",
    "EncoderLayer norm=pre dropout=0.3 mask=both",
    "DecoderLayer norm=post dropout=0.3 mask=both",
    "DecoderLayer norm=pre dropout=0.3 mask=both",
    "Transformer logits",
    "Transformer norm=pre tied=True smoothing=0.1 dropout=0.0",
)

CONVERTED = "Transformer norm=pre tied=True smoothing=0.1 dropout=0.0"  # weights also compared in PyTorch's layout
