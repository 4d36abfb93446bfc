"""Published bugs in learning from preferences: DPO and GRPO."""

from tests.museum.planting import Exhibit

CHECKED = "_check_counted(counted, z.shape[:-1])"

EXHIBITS = (
    Exhibit(
        "the log-probabilities are those of the padding, not of the answer",
        "A mask that is True for padding, multiplied as if it were True for tokens. All losses look healthy.",
        {"functional:token_log_probs": (CHECKED, "counted = ~counted")},
        "QwenAudio/CosyVoice #1449",
    ),
    Exhibit(
        "the rejected answer is cut with the mask of the chosen one",
        "Two lines that differ in one word, copied. With answers of equal length nobody can tell.",
        {
            "functional:dpo": (
                "(rejected - ref_rejected).sum(axis=-1)",
                "((rejected - ref_rejected) * (chosen != 0)).sum(axis=-1)",
            )
        },
        "QwenAudio/CosyVoice #1449",
    ),
    Exhibit(
        "padding counts in the log-probability of an answer",
        "The more padding, the less likely the answer: a pair is judged by the lengths of its answers.",
        {"functional:token_log_probs": (CHECKED, "counted = counted | True")},
        "0xallam/Direct-Preference-Optimization #4",
    ),
    Exhibit(
        "the mean over the tokens of an empty answer is 0 / 0",
        "One prompt that fills the whole length leaves no token for its answer, and one NaN spoils all weights.",
        {"functional:grpo": ("xp.maximum(share.sum(axis=1, keepdims=True), 1.0)", "share.sum(axis=1, keepdims=True)")},
        "allenai/open-instruct #1625",
    ),
    Exhibit(
        "equal rewards are divided by a deviation of nearly 0",
        "The mean of three times 0.1 is not 0.1. What should be 0 / 0 is one rounding error divided by another.",
        {"functional:group_advantages": ("groups = groups - groups[:, :1]", "eps = 0.0")},
        "NVIDIA-NeMo/RL #4161",
    ),
)
