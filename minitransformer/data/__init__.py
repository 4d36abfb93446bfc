"""Toy tasks, text, sentence pairs and batches. All of it stays on the host: the arrays hold token ids, which are small.

Reading order: `task` (what a training loop expects), `tasks` (five toy tasks), `prompted` (the same for a decoder-only
model), `parsing` (expressions and their trees), `text` (language modeling), `masked` (masked language modeling),
`pairs` (a file of sentence pairs), `bible` (pairs from the Bible), `translation` (pairs as batches), `labelled`
(sentences with labels) and `by_length` (parts of a batch with less padding).
"""

from typing import TYPE_CHECKING

from minitransformer.lazy import importer

if TYPE_CHECKING:
    from minitransformer.data.bible import load_bible
    from minitransformer.data.masked import MaskedTask
    from minitransformer.data.pairs import PairCorpus, load_pairs
    from minitransformer.data.task import Task, TrainingBatch
    from minitransformer.data.tasks import Batch, ToyTask, get_task, task_names
    from minitransformer.data.text import Corpus, TextBatch, TextTask, load_python_topics, load_shakespeare, load_text
    from minitransformer.data.translation import TranslationTask

__all__ = [
    "Batch",
    "Corpus",
    "MaskedTask",
    "PairCorpus",
    "Task",
    "TextBatch",
    "TextTask",
    "ToyTask",
    "TrainingBatch",
    "TranslationTask",
    "get_task",
    "load_bible",
    "load_pairs",
    "load_python_topics",
    "load_shakespeare",
    "load_text",
    "task_names",
]

__getattr__ = importer(__name__, __all__, ("bible", "masked", "pairs", "task", "tasks", "text", "translation"))
