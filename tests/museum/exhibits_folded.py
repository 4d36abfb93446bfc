"""Bugs of folding a model for decoding: what is multiplied into a matrix must be all of what it replaces."""

from minitransformer.decoding import folded
from minitransformer.exercises.planting import Exhibit

EXHIBITS = (
    Exhibit(
        "the shift of a norm is lost when it is folded",
        "beta is 0 in a new model, and only there does nobody miss it. Where does beta W go?",
        folded.after_norm,
        "[] if beta is None else [beta.data @ W]",
        "[]",
    ),
    Exhibit(
        "the scale of a norm is folded into the columns",
        "diag(gamma) W scales rows: gamma belongs to what goes in. With a square W no shape complains.",
        folded.after_norm,
        "gamma[:, None] * W",
        "W * gamma.sum()",
    ),
    Exhibit(
        "eps is not multiplied by the width",
        "x . x is C times the mean square, so what is added to it must be C eps.",
        folded.Unit.__init__,
        "len(gamma) * norm.eps",
        "norm.eps",
    ),
    Exhibit(
        "the scores' scale is folded into the keys as well",
        "Once into the queries is enough. What is the scale of a score then?",
        folded.FoldedBlock._scale_queries,
        "[:, :C]",
        "[:, : 2 * C]",
    ),
    Exhibit(
        "the scale of the queries forgets their bias",
        "(u W + b) s is u W s + b s.",
        folded.FoldedBlock._scale_queries,
        "self.qkv.b[:C] *= scale",
        "pass",
    ),
    Exhibit(
        "a scale is folded into queries that have no scores",
        "Linear attention takes the features of q, and elu(x) + 1 of half a vector is not half of it.",
        folded.FoldedBlock._scale_queries,
        "if not self.kind.has_scores:",
        "if False:",
    ),
    Exhibit(
        "the folded heads read the keys of another group",
        "Neighbouring heads share keys, so a group is a run of heads. Which axis is cut?",
        folded.FoldedBlock._attend,
        "q.reshape(B, G, -1, D)",
        "q.reshape(B, -1, G, D).swapaxes(1, 2)",
    ),
    Exhibit(
        "RMSNorm is folded as if it centred",
        "It takes no mean away, so nobody may do it for it.",
        folded.FoldedGPT.__init__,
        'centred if hasattr(norm, "beta") else lambda rows: rows',
        "centred",
    ),
    Exhibit(
        "LayerNorm is folded as if it did not centre",
        "The length of x then counts its mean.",
        folded.FoldedGPT.__init__,
        'centred if hasattr(norm, "beta") else lambda rows: rows',
        "lambda rows: rows",
    ),
    Exhibit(
        "the folded model turns its keys as if they stood at position 0",
        "As in the plain layers: the angle is all that a key knows of its place.",
        folded.FoldedBlock._attend,
        "self.positions.rotate(k, start)",
        "self.positions.rotate(k)",
    ),
    Exhibit(
        "the folded model sees padding in front of a text",
        "A mask that is handed on three times is lost once.",
        folded.FoldedBlock._attend,
        "softmax(scores, allowed, ",
        "softmax(scores, None, ",
    ),
)
