"""Toy tasks, text and batches. Everything here stays on the host: ids are small, and are checked there."""

from minitransformer.data.masked import MaskedTask
from minitransformer.data.tasks import Batch, ToyTask, get_task, task_names
from minitransformer.data.text import Corpus, TextBatch, TextTask, load_shakespeare, load_text

__all__ = [
    "Batch",
    "Corpus",
    "MaskedTask",
    "TextBatch",
    "TextTask",
    "ToyTask",
    "get_task",
    "load_shakespeare",
    "load_text",
    "task_names",
]
