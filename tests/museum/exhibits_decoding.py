"""Bugs of decoding: how the next token is chosen, where a sequence ends, which sequences live on."""

from minitransformer import decoding, evaluation
from minitransformer.decoding import beam, incremental, sampling
from minitransformer.decoding.translate import encode_source, find_translations
from minitransformer.evaluation import loss as evaluation_loss
from minitransformer.exercises.planting import Exhibit
from minitransformer.recipes import toy
from minitransformer.recipes.text import spread_windows

CHOOSING = (
    Exhibit(
        "log_softmax takes the logarithm of a softmax",
        "exp(1000) is infinite, and what has probability 1e-400 has the logarithm of 0.",
        sampling.log_softmax,
        "logits - logits.max(axis=-1, keepdims=True)",
        "logits.copy()",
    ),
    Exhibit(
        "top_p drops the token that crosses p",
        "The fewest that add up to p, or the most that stay below it? With a sure token the second is none.",
        sampling.Sampling._kept,
        "np.minimum(short.sum(axis=-1, keepdims=True) + 1, count)",
        "np.maximum(short.sum(axis=-1, keepdims=True), 1)",
    ),
    Exhibit(
        "top_p counts the shares before top_k has cut",
        "What is left after the first cut adds up to 1 again.",
        sampling.Sampling._kept,
        "self.top_p * cumulative[:, -1:]",
        "self.top_p * p.sum(axis=-1, keepdims=True)",
    ),
    Exhibit(
        "temperature comes after the cut",
        "Both orders are in use. A nucleus of the sharpened p is smaller than one of p.",
        sampling.Sampling.probabilities,
        "p *= self._kept(p)",
        "p *= self._kept(np.exp(log_p))",
    ),
    Exhibit(
        "the temperature multiplies",
        "Then a low one makes all tokens alike. Towards 0 it must be greedy.",
        sampling.Sampling.probabilities,
        "p /= self.temperature",
        "p *= self.temperature",
    ),
    Exhibit(
        "of equally likely tokens all are kept",
        "top_k = 1 then throws a coin between two leaders, and is not greedy.",
        sampling.Sampling._kept,
        "equal & (equal.cumsum(axis=-1) <= count)",
        "equal",
    ),
    Exhibit(
        "all rows of a batch are drawn by one random number",
        "Ask the same question ten times in one batch, and all ten answers agree.",
        sampling.Sampling.__call__,
        "self.rng.random(len(log_p))",
        "self.rng.random(1)",
    ),
    Exhibit(
        "a number beyond the last sum draws a token that is not there",
        "Shares of 1 add up to 0.9999999999999999, and the generator gives just that.",
        sampling.Sampling.__call__,
        " * cumulative[:, -1]",
        "",
    ),
    Exhibit(
        "the number 0 draws a token of probability 0",
        "< or <=: once in 2^53 draws, or at once where the first token is impossible.",
        sampling.Sampling.__call__,
        "cumulative <= drawn[:, None]",
        "cumulative < drawn[:, None]",
    ),
    Exhibit(
        "a run may come twice if it is the last one",
        "One window too few: the newest tokens are part of what was said, too.",
        sampling.forbid_repeats,
        "runs = ids.shape[1] - length + 1",
        "runs = ids.shape[1] - length",
    ),
)

GENERATING = (
    Exhibit(
        "decoding starts with another token than training",
        "The model was never asked what follows eos.",
        incremental.SourceState.__init__,
        "((len(source), 1), BOS,",
        "((len(source), 1), BOS + 1,",
    ),
    Exhibit(
        "decoding goes on after eos",
        "Rows end at different times; what one says while waiting for the others is no answer.",
        decoding.generate_tokens,
        "token[finished], log_probs[finished] = PAD, 0",
        "pass",
    ),
    Exhibit(
        "a row that has ended may begin again",
        "Whether it says eos now, instead of whether it has said it.",
        decoding.generate_tokens,
        "finished |= token == eos",
        "finished = token == eos",
    ),
    Exhibit(
        "log_probs are those of the sharpened model",
        "Temperature is how we choose, not what the model believes.",
        decoding.generate_tokens,
        "log_probs = log_p[rows, token]",
        'log_probs = log_softmax(log_p / getattr(choose, "temperature", 1))[rows, token]',
    ),
    Exhibit(
        "log_probs are taken after repeats were forbidden",
        "What may not be said any more has given its share to the others.",
        decoding.generate_tokens,
        "log_probs = log_p[rows, token]",
        "log_probs = log_softmax(choices)[rows, token]",
    ),
    Exhibit(
        "the prompt may be said again",
        "no_repeat looks at the answer alone, and the model quotes the question.",
        decoding.generate_tokens,
        "forbid_repeats(log_p, said, no_repeat)",
        "forbid_repeats(log_p, said[:, prompt.shape[1] :], no_repeat)",
    ),
    Exhibit(
        "a row that may say nothing says something",
        "All logarithms are minus infinity, and argmax takes the first.",
        decoding.generate_tokens,
        "finished |= speechless",
        "pass",
    ),
    Exhibit(
        "an exact match is counted token by token",
        "90 % of tokens right can be 0 % of sequences. Which of the two do you print?",
        evaluation.exact_match,
        "(decoded == expected).all(axis=1).mean()",
        "(decoded == expected).mean()",
    ),
    Exhibit(
        "an answer is compared up to the end of the shorter of two",
        "What comes after the right answer, or is missing at its end, is never looked at.",
        evaluation.exact_match,
        "width = max(decoded.shape[1], expected.shape[1])\n"
        "    decoded, expected = (np.pad(x, ((0, 0), (0, width - x.shape[1]))) for x in (decoded, expected))",
        "width = min(decoded.shape[1], expected.shape[1])\n"
        "    decoded, expected = (x[:, :width] for x in (decoded, expected))",
    ),
    Exhibit(
        "only the first part of the test counts",
        "The loop over parts ends after one, and the share is that of 250 answers.",
        evaluation.decode_and_score,
        "exact_match(decoded, batch.target_out)",
        "exact_match(decoded[:DECODED], batch.target_out[:DECODED])",
    ),
    Exhibit(
        "the loss on held-out text leaves out the sequences that do not fill a micro batch",
        "A range that ends before its last, shorter step.",
        evaluation_loss._cut,
        "range(0, len(batch.targets), step)",
        "range(0, len(batch.targets) - step + 1, step)",
    ),
    Exhibit(
        "the result of a toy task is measured on sequences that were trained on",
        "Splendid, and no measure of anything. From which side of the split is the test?",
        toy.ToyRecipe.evaluate,
        "held_out_batch(",
        "batch(",
    ),
    Exhibit(
        "a text model is tested on the first scene of the held-out play",
        "As cheap as windows from all of it, and the curve shows one scene.",
        spread_windows,
        "np.linspace(0, len(batch.targets) - 1, WINDOWS).astype(int)",
        "np.arange(min(WINDOWS, len(batch.targets)))",
    ),
    Exhibit(
        "decoding stops where the longest right answer ends",
        "Then an answer without an end looks like the right one without its eos. What does the model say beyond?",
        evaluation.decode_and_score,
        "batch.target_out.shape[1] + SLACK",
        "batch.target_out.shape[1]",
    ),
    Exhibit(
        "the answers of short parts are padded in front",
        "Two parts of different width become one array. On which side was the padding?",
        evaluation.decode_and_score,
        "np.pad(part, ((0, 0), (0, width - part.shape[1])))",
        "np.pad(part, ((0, 0), (width - part.shape[1], 0)))",
    ),
)

BEAM = (
    Exhibit(
        "all hypotheses of the first step come from the same beginning",
        "Then the beam holds its best answer four times, and is greedy.",
        decoding.beam_search,
        "[[((), 0.0)] for",
        "[[((), 0.0)] * beam for",
    ),
    Exhibit(
        "a hypothesis forgets the probability of its beginning",
        "Each step then ranks by its last token alone.",
        beam._extend,
        "np.array([log_prob for _, log_prob in alive])[:, None] + log_p",
        "log_p.astype(np.float64)",
    ),
    Exhibit(
        "the state is not selected when hypotheses are",
        "The words are those of the survivor, what the model remembers is another's.",
        decoding.beam_search,
        "state.select(rows)",
        "pass",
    ),
    Exhibit(
        "rows are selected without counting the sources before them",
        "All sources go on with what was read of the first. One source alone does not show it.",
        decoding.beam_search,
        "start + row for",
        "row for",
    ),
    Exhibit(
        "the score is over the length of the parent",
        "One token short: ((5 + l) / 6)^alpha is 1 for an answer of one token.",
        beam._hypothesis,
        "length_penalty(len(ids), alpha)",
        "length_penalty(len(ids) - 1, alpha)",
    ),
    Exhibit(
        "eos does not count in the length",
        "Answers that end are then shorter than those that were cut off by as much as their end.",
        beam._extend,
        "finished.append(_hypothesis(ids, log_prob, alpha))",
        "finished.append(_hypothesis(ids, log_prob, alpha)._replace("
        "score=log_prob / length_penalty(len(ids) - 1, alpha)))",
    ),
    Exhibit(
        "the length penalty multiplies",
        "Logarithms are negative: what should help long answers then harms them.",
        beam._hypothesis,
        "log_prob / length_penalty",
        "log_prob * length_penalty",
    ),
    Exhibit(
        "the search stops at the first answer that has ended",
        "Short answers end first, and better ones are still on their way.",
        beam._is_done,
        "return alive[0][1] / penalty <= max(hypothesis.score for hypothesis in finished)",
        "return True",
    ),
    Exhibit(
        "the search stops by the penalty of the present length",
        "A living hypothesis may grow, and its score with it: what counts is the kindest length to come.",
        beam._is_done,
        "max_new_tokens if alpha > 0 else len(alive[0][0]) + 1",
        "len(alive[0][0])",
    ),
    Exhibit(
        "what is alive after max_new_tokens is lost",
        "An answer that was cut off is an answer, and often the best there is.",
        decoding.beam_search,
        "for ids, log_prob in alive[i]]",
        "for ids, log_prob in alive[i][:0]]",
    ),
    Exhibit(
        "only as many extensions as the beam is wide are looked at",
        "Those of them that end leave their places empty, and the beam runs dry.",
        beam._extend,
        "2 * beam",
        "beam",
    ),
    Exhibit(
        "an ended hypothesis counts however unlikely its end was",
        "With a beam of one, every second choice that is eos would be kept: no longer greedy.",
        beam._extend,
        "if rank < beam:",
        "if rank < 2 * beam:",
    ),
)

TRANSLATING = (
    Exhibit(
        "translations come back in the order of their sources' lengths",
        "Sentences are sorted to save padding. Nobody had asked for that order.",
        find_translations,
        "in zip(rows, answers",
        "in zip(sorted(rows), answers",
    ),
    Exhibit(
        "a translation may be as long as those of the longest source in its batch",
        "The same sentence then has another answer in other company.",
        find_translations,
        "len(sources[row]) + MORE",
        "ids.shape[1] + MORE",
    ),
    Exhibit(
        "the source of a translation has no end token",
        "The model has never read a sentence without one.",
        encode_source,
        'sentence.strip() else ""), EOS)',
        'sentence.strip() else ""), tokenizer.encode(sentence)[-1:])',
    ),
)

EXHIBITS = (*CHOOSING, *GENERATING, *BEAM, *TRANSLATING)
