"""Bugs in translation data: reading and splitting pairs of sentences, their batches, and resuming in an epoch."""

from minitransformer.data import bible, pairs
from minitransformer.data.translation import EncodedPairs, TranslationTask
from minitransformer.exercises.planting import Exhibit
from minitransformer.training.batches import Batches

READING = (
    Exhibit(
        "a line ends wherever Unicode says so",
        "splitlines also splits at U+2028 and seven more, which copied text has. Its line is then half a pair.",
        pairs.read_pairs,
        'read_text(path).split("\\n")',
        "read_text(path).splitlines()",
    ),
    Exhibit(
        "a quote at the beginning of a sentence opens a field",
        "A reader for CSV, with a tab for the comma. In a sentence, a quote is a character as any other.",
        pairs.read_pairs,
        'line.split("\\t")',
        '__import__("csv").reader([line], delimiter="\\t").__next__()',
    ),
    Exhibit(
        "an umlaut of two characters is another word",
        "Files from a Mac write u and two dots. The vocabulary has both, and training has seen one of them.",
        pairs.tidy,
        'unicodedata.normalize("NFC", text)',
        "text",
    ),
    Exhibit(
        "the numbers of an export are taken for the sentences",
        "Four columns instead of two, and a model that learns to translate 1277 into 'Let us try something'.",
        pairs.read_pairs,
        "columns = columns[1::2]",
        "pass",
    ),
    Exhibit(
        "a verse is cut although its translation has fewer sentences",
        "zip stops at the shorter side: the last sentences are lost, and after the first cut too many none fit.",
        bible.split_verse,
        """if len(sources) == len(targets) and all(map(have_similar_lengths, sources, targets)):
        return list(zip(sources, targets, strict=True))""",
        """if all(map(have_similar_lengths, sources, targets)):
        return list(zip(sources, targets, strict=False))""",
    ),
    Exhibit(
        "a verse that one translation lacks is a pair",
        "A sentence and nothing: the model learns that silence is a translation.",
        bible.split_verse,
        "[(source, target)] if have_similar_lengths(source, target) else []",
        "[(source, target)]",
    ),
)

SPLIT = (
    Exhibit(
        "the hash of the whole pair decides what is held out",
        "A sentence with two translations may be on both sides: the test asks what training has seen.",
        pairs.load_pairs,
        "pair[0].encode()",
        '"\\t".join(pair).encode()',
    ),
    Exhibit(
        "Python's own hash decides what is held out",
        "Each process seeds it differently. A resumed run trains on what it was tested on.",
        pairs.load_pairs,
        "int(hashlib.sha256(pair[0].encode()).hexdigest()[:8], 16) / 2**32",
        "hash(pair[0]) % 2**32 / 2**32",
    ),
    Exhibit(
        "sentences of held-out books are also in the training text",
        "Books are apart, and still repeat each other. The score is that of a memory.",
        bible.load_bible,
        "without_sources_of(parts[name], train)",
        "list(parts[name])",
    ),
)

BATCH = (
    Exhibit(
        "the decoder reads what it should predict",
        "Without the shift the loss falls to 0 within an epoch, and the model can only copy what it is given.",
        EncodedPairs.batch,
        "np.concatenate([np.full((len(target), 1), BOS), target[:, :-1]], axis=1)",
        "target",
    ),
    Exhibit(
        "sentences have no eos",
        "Training looks well. A model that never saw an end does not stop.",
        EncodedPairs.__init__,
        "np.concatenate((tokenizer.encode(text), end))",
        "tokenizer.encode(text)",
    ),
    Exhibit(
        "targets begin with padding instead of bos",
        "Decoding begins with bos, which the model has then never read.",
        EncodedPairs.batch,
        "np.full((len(target), 1), BOS)",
        "np.full((len(target), 1), PAD)",
    ),
    Exhibit(
        "the decoder reads the eos of short sentences",
        "Shifting the padded rows moves the eos of all but the longest into the input.",
        EncodedPairs.batch,
        "np.where(target_in == EOS, PAD, target_in)",
        "target_in",
    ),
    Exhibit(
        "the padding of targets is eos, and counts",
        "The loss is a mean over all positions, and saying eos after eos is easy: a good loss for nothing.",
        EncodedPairs.batch,
        "np.where(target_in == EOS, PAD, target_in), target)",
        "np.where(target_in == EOS, PAD, target_in), np.where(target == PAD, EOS, target))",
    ),
    Exhibit(
        "source and target are swapped",
        "The loss is as good as ever. Is it German into English?",
        EncodedPairs.batch,
        "for side in (0, 1)",
        "for side in (1, 0)",
    ),
    Exhibit(
        "eos is not counted when long pairs are left out",
        "One token more than the model has positions, in one pair of a thousand: an error after an hour.",
        EncodedPairs.__init__,
        "<= max_len",
        "<= max_len + 1",
    ),
)

EPOCH = (
    Exhibit(
        "the budget of a batch does not count padding",
        "Memory is spent on all positions. One long sentence among short ones makes a batch of many times the budget.",
        EncodedPairs.batches,
        "(place + 1 - start) * longest > max_tokens",
        "self.lengths[rows[start : place + 1]].sum(axis=0).max() > max_tokens",
    ),
    Exhibit(
        "the budget of a batch counts the targets only",
        "Right for most pairs. A long source with a short translation comes for free.",
        EncodedPairs.batches,
        "self.lengths[rows].max(axis=1)",
        "self.lengths[rows][:, 1]",
    ),
    Exhibit(
        "pairs are not sorted by length",
        "Nothing is wrong, except that half of all the work is done for padding.",
        EncodedPairs.batches,
        "rows = rows[np.lexsort(self.lengths[rows].T)]",
        "pass",
    ),
    Exhibit(
        "sorted batches are never shuffled",
        "Short ones first: each epoch ends with long sentences alone, and the loss is a saw.",
        EncodedPairs.batches,
        "batches if rng is None else [batches[i] for i in rng.permutation(len(batches))]",
        "batches",
    ),
    Exhibit(
        "the same pairs meet in every epoch",
        "Only the order of the batches is new.",
        EncodedPairs.batches,
        "np.arange(len(self)) if rng is None else rng.permutation(len(self))",
        "np.arange(len(self))",
    ),
    Exhibit(
        "every epoch has the same order",
        "A seed inside of the epoch. What comes last is always what comes last.",
        TranslationTask.epoch,
        "self.train.batches(size, rng)",
        "self.train.batches(size, np.random.default_rng(0))",
    ),
    Exhibit(
        "the last batch of the sorted pairs is dropped",
        "drop_last is for batches of random pairs. These are the longest ones, in every epoch.",
        EncodedPairs.batches,
        "np.split(rows, cuts)",
        "np.split(rows, cuts)[:-1]",
    ),
)

RESUMING = (
    Exhibit(
        "a resumed run repeats the last batch",
        "Counting from 0 and from 1. The weights are good, and their bits are others.",
        Batches.state,
        '"position": self.position',
        '"position": max(self.position - 1, 0)',
    ),
    Exhibit(
        "a resumed run skips a batch",
        "A run that is stopped often has never seen some of its pairs.",
        Batches.load_state,
        'check_integer("position", facts["position"], least=0)',
        'check_integer("position", facts["position"], least=0) + 1',
    ),
    Exhibit(
        "a resumed run begins its epoch again",
        "The first batches are seen once more, and a run that stops in each epoch never sees the last ones.",
        Batches.load_state,
        'check_integer("position", facts["position"], least=0)',
        "0",
    ),
    Exhibit(
        "a resumed run skips batches of another order",
        "The generator has gone on since the epoch was shuffled: some pairs come twice, others not at all.",
        Batches.state,
        '"data_rng": self._start',
        '"data_rng": generator_state(self.rng)',
    ),
)

EXHIBITS = (*READING, *SPLIT, *BATCH, *EPOCH, *RESUMING)
