"""Toy tasks and batches. Everything here stays on the host: ids are small, and are checked there."""

from minitransformer.data.tasks import Batch, ToyTask, get_task, task_names

__all__ = ["Batch", "ToyTask", "get_task", "task_names"]
