"""Toy tasks, text and batches. All of it stays on the host: the arrays hold token ids, which are small.

Reading order: `task` (what a training loop expects), `tasks` (five toy tasks), `prompted` (the same for a decoder-only
model), `text` (language modelling), `masked` (masked language modelling) and `by_length` (parts of a batch with less
padding).
"""

from minitransformer.data.masked import MaskedTask
from minitransformer.data.task import Task, TrainingBatch
from minitransformer.data.tasks import Batch, ToyTask, get_task, task_names
from minitransformer.data.text import Corpus, TextBatch, TextTask, load_shakespeare, load_text

__all__ = [
    "Batch",
    "Corpus",
    "MaskedTask",
    "Task",
    "TextBatch",
    "TextTask",
    "ToyTask",
    "TrainingBatch",
    "get_task",
    "load_shakespeare",
    "load_text",
    "task_names",
]
