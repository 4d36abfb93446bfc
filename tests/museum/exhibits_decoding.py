"""Published bugs in decoding, in evaluation, and in the data."""

from tests.museum.planting import Exhibit

EXHIBITS = (
    Exhibit(
        "beam search selects sequences, and the buffers stay with the old ones",
        "Each hypothesis goes on with the past of another one.",
        {"decoding.faster.before_2017:ConvState._select": ("buffer.select(kept)", "pass")},
        "huggingface/transformers #46612",
    ),
    Exhibit(
        "top_p drops the token that crosses p",
        "The fewest that add up to p, or the most that stay below it? With a sure token the second is none.",
        {
            "decoding.sampling:Sampling._kept": (
                "np.minimum(short.sum(axis=-1, keepdims=True) + 1, count)",
                "np.maximum(short.sum(axis=-1, keepdims=True), 1)",
            )
        },
        "Biohub/esm #360",
    ),
    Exhibit(
        "decoding goes on after eos",
        "Rows end at different times; what one says while waiting for the others is no answer.",
        {"decoding:generate_tokens": ("token[finished], log_probs[finished] = filler, 0", "pass")},
        "facebookresearch/ParlAI #2058",
    ),
    Exhibit(
        "the loss on held-out text leaves out the sequences that do not fill a micro batch",
        "A range that ends before its last, shorter step.",
        {
            "evaluation.loss:_cut": (
                "range(0, len(batch.targets), step)",
                "range(0, len(batch.targets) - step + 1, step)",
            )
        },
        "thuml/Autoformer #104",
    ),
    Exhibit(
        "the state is not selected when hypotheses are",
        "The words are those of the survivor, what the model remembers is another's.",
        {"decoding:beam_search": ("state.select(rows)", "pass")},
        "awslabs/sockeye #731",
    ),
    Exhibit(
        "the score is over the length of the parent",
        "One token short: ((5 + l) / 6)^alpha is 1 for an answer of one token.",
        {
            "decoding.search.beam:_hypothesis": (
                "length_penalty(len(ids), alpha)",
                "length_penalty(len(ids) - 1, alpha)",
            )
        },
        "awslabs/sockeye #483",
    ),
    Exhibit(
        "the search stops at the first answer that has ended",
        "Short answers end first, and better ones are still on their way.",
        {
            "decoding.search.beam:_is_done": (
                "return alive[0][1] / penalty <= max(hypothesis.score for hypothesis in finished)",
                "return True",
            )
        },
        "jadore801120/attention-is-all-you-need-pytorch #21",
    ),
    Exhibit(
        "the search stops by the penalty of the present length",
        "A living hypothesis may grow, and its score with it: what counts is the kindest length to come.",
        {
            "decoding.search.beam:_is_done": (
                "max_new_tokens if alpha > 0 else len(alive[0][0]) + 1",
                "len(alive[0][0])",
            )
        },
        "huggingface/transformers #20901",
    ),
    Exhibit(
        "texts padded on the left begin at the position of their padding",
        "The first word of a short text stands where the longest of the batch has its fourth.",
        {"decoding.faster.gpt:GPTState.extend_last": ("start = start - self.padding", "pass")},
        "huggingface/transformers #21080",
    ),
    Exhibit(
        "a quote at the beginning of a sentence opens a field",
        "A reader for CSV, with a tab for the comma. In a sentence, a quote is a character as any other.",
        {
            "data.pairs:read_pairs": (
                'line.split("\\t")',
                '__import__("csv").reader([line], delimiter="\\t").__next__()',
            )
        },
        "pytorch/text #349",
    ),
    Exhibit(
        "Python's own hash decides what is held out",
        "Each process seeds it differently. A resumed run trains on what it was tested on.",
        {
            "data.pairs:place": (
                "int(hashlib.sha256(pair[0].encode()).hexdigest()[:8], 16) / 2**32",
                "hash(pair[0]) % 2**32 / 2**32",
            )
        },
        "for-all-dev/git-history-evals #120",
    ),
    Exhibit(
        "beam search keeps the recurrent states of the rows that it dropped",
        "States must follow their hypotheses, as KV caches do.",
        {"decoding.faster.before_2017:RecurrentState._select": ("array[:, kept] for", "array[:, : len(rows)] for")},
        "huggingface/transformers #46612",
    ),
)
