"""The recipes for classification: a BERT that says which label a sentence has, and a ViT that reads digits."""

import dataclasses
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from minitransformer.backend import to_host
from minitransformer.data import Corpus
from minitransformer.data.labelled import LEVELS, SIDE, DigitsTask, LabelledTask, encode_sentences, load_labelled
from minitransformer.decoding import log_softmax
from minitransformer.models import TransformerConfig
from minitransformer.models.since_2017.bert import BERT, bert_config
from minitransformer.models.since_2017.vision import ViT
from minitransformer.recipes.recipe import Recipe, SizedOptions, Trained
from minitransformer.recipes.text import TextOptions, TextRecipe
from minitransformer.system.progress import tqdm
from minitransformer.tokenizers import Tokenizer

AT_A_TIME = 64  # sentences or images
READS, LEAST, MOST = 15, 300, 3000  # a sentence is read so many times, if that takes so many steps
SHOWN = 20  # labels in the closing table, the commonest
PATCH, LOOKED_AT = 2, 5  # pixels on a side of a patch; images whose attention is drawn, right ones and wrong ones


def classify(model: Any, tokenizer: Tokenizer, sentences: Sequence[str]) -> np.ndarray:
    """The probability of each of K labels for each sentence -> (N, K). `model` is a BERT with `num_classes` = K + 1."""
    parts = [sentences[start : start + AT_A_TIME] for start in range(0, len(sentences), AT_A_TIME)]
    logits = [to_host(model(encode_sentences(tokenizer, part, model.config.max_len, model.config))) for part in parts]
    return np.exp(log_softmax(np.concatenate(logits)[:, 1:]))  # without class 0, which is padding


class ClassifyRecipe(TextRecipe):
    """A BERT with the pooled head, on sentences with labels."""

    name, own_text, unit = "classify", "docstrings of Python's library", "sentence"
    help = "a BERT that says which label a sentence has: one of yours, or a package of Python"
    defaults = dataclasses.replace(TextRecipe.defaults, batch_size=16, length=64, d_model=64, num_layers=2, dropout=0.1)

    def fitting(self, given: dict[str, Any]) -> tuple[TextOptions, list[str]]:
        """Steps that fit the number of sentences."""
        batch = given.get("batch_size", self.defaults.batch_size)
        dataclasses.replace(self.defaults, batch_size=batch)  # which refuses 0
        count = len(load_labelled(given.get("text"))[0])
        steps = max(LEAST, min(MOST, READS * count // batch))
        reason = f"--steps {steps}: {count:,} sentences are read about {steps * batch / count:.2g} times"
        return dataclasses.replace(self.defaults, steps=steps), [] if {"steps", "minutes"} & given.keys() else [reason]

    def data(self, options: TextOptions, tokenizer: Tokenizer | None = None) -> LabelledTask:
        """The sentences, in new tokens if there is no `tokenizer`."""
        parts = load_labelled(options.text)
        corpus = Corpus(*("\n".join(sentence for sentence, _ in part) for part in parts))
        return LabelledTask(*parts, self.tokens(options, corpus, tokenizer), options.length)

    def metadata(self, data: LabelledTask) -> dict[str, Any]:
        """The tokenizer, and the labels in their order."""
        return {**super().metadata(data), "labels": data.labels}

    def model(self, options: TextOptions, data: LabelledTask) -> tuple[Any, TransformerConfig]:
        """A BERT of as many tokens as those of `train masked`, and as many classes as labels, and one for padding."""
        config = bert_config(data.tokenizer.vocab_size + 1, **options.sizes())
        return partial(BERT, num_classes=len(data.labels) + 1), config

    def per_unit(self, data: Any, batches: Any) -> float:
        """A sentence has one label."""
        return 1.0

    def describe(self, options: TextOptions, model: BERT, data: LabelledTask) -> str:
        """The sentences, and the model."""
        count, held_out = len(data.train.ids), len(data.held_out.ids)
        return (
            f"{self.name}: {getattr(options, 'text', None) or self.own_text}; {count:,} {self.unit}s to learn from, "
            f"{held_out:,} held out {data.about}; {model.num_parameters():,} parameters, {options.steps:,} steps"
        )

    def show(self, options: TextOptions, model: BERT, data: LabelledTask) -> None:
        """The accuracy."""
        tqdm.write(f"{self.evaluate(options, model, data)[0]['accuracy']:.1%} of all held-out {self.unit}s are right")

    def evaluate(self, options: TextOptions, model: BERT, data: LabelledTask) -> tuple[dict[str, Any], np.ndarray]:
        """The accuracy, and how often each label (row) was taken for each (column)."""
        targets, K = data.held_out.targets - 1, len(data.labels)
        logits = [to_host(model(*batch.inputs)) for batch in data.held_out_batches(AT_A_TIME)]
        guesses = np.concatenate(logits)[:, 1:].argmax(axis=1)
        counts = np.bincount(targets * K + guesses, minlength=K * K).reshape(K, K)
        accuracy, commonest = counts.trace() / len(targets), counts.sum(axis=1).max() / len(targets)
        return {"accuracy": accuracy, "commonest": commonest, "held_out": len(targets)}, counts

    def report(self, trained: Trained) -> list[str]:
        """The accuracy, and what each label was taken for."""
        result, counts, labels = trained.result, trained.evaluated, trained.data.labels
        lines = [f"{'label':<20} {'held out':>8}  right  most often taken for"]
        for label, row in sorted(zip(labels, counts, strict=True), key=lambda each: -each[1].sum())[:SHOWN]:
            taken = ", ".join(f"{labels[k]} {row[k]}" for k in np.argsort(-row)[:4] if row[k] and labels[k] != label)
            lines.append(f"{label[:20]:<20} {row.sum():>8,} {row[labels.index(label)] / row.sum():>6.1%}  {taken}")
        always = f"{'always the commonest label':<26} {result['commonest']:.1%}"
        return [*lines, "", f"{'right, of those held out':<26} {result['accuracy']:.1%}", always]

    def draw(self, trained: Trained, folder: Path) -> list[Path]:
        """The loss, and which label was taken for which."""
        from minitransformer.plotting import plot_samples

        counts, labels, path = trained.evaluated, trained.data.labels, folder / "confusion.png"
        title = f"{self.name}: {trained.result['accuracy']:.1%} of the held-out {self.unit}s are right"
        shares = counts / counts.sum(axis=1, keepdims=True)
        plot_samples([(shares, labels, labels)], path, title, ("share", "label chosen", f"label of the {self.unit}"))
        return [*super().draw(trained, folder), path]


class DigitsRecipe(ClassifyRecipe):
    """A Vision Transformer on scikit-learn's digits, with pre-norm, as in its paper."""

    name, own_text, unit = "digits", "scikit-learn's digits", "image"
    help = "a Vision Transformer that reads handwritten digits, in patches of 2 x 2 pixels"
    lines = "training images, each moved", "held-out images, a sample"
    defaults: Any = SizedOptions(
        steps=4000, warmup=50, weight_decay=0.05, positions="learned", d_model=32, num_layers=2
    )
    memory_like = staticmethod(partial(BERT, num_classes=1))  # a plain partial becomes a method in Python 3.14
    fitting, metadata = Recipe.fitting, Recipe.metadata

    def data(self, options: Any, tokenizer: Tokenizer | None = None) -> DigitsTask:
        """The images."""
        return DigitsTask(options.seed)

    def model(self, options: Any, data: LabelledTask) -> tuple[Any, TransformerConfig]:
        """A ViT."""
        config = bert_config(LEVELS + 1, norm="pre", max_len=1 + (SIDE // PATCH) ** 2, **options.sizes())
        return partial(ViT, num_classes=len(data.labels) + 1, patch_size=PATCH**2), config

    def largest_batch(self, options: Any, data: Any) -> tuple[int, list[int]]:
        """The images of any batch, and their patches with [CLS]."""
        return options.batch_size, [1 + (SIDE // PATCH) ** 2]

    def draw(self, trained: Trained, folder: Path) -> list[Path]:
        """The loss, which digit was taken for which, and where [CLS] looks in some images."""
        from minitransformer.plotting import plot_images

        (pixels, targets), path = trained.data.held_out, folder / "attention.png"
        digits, guesses = targets - 1, to_host(trained.model(pixels))[:, 1:].argmax(axis=1)
        rows = np.concatenate([np.flatnonzero((guesses == digits) == right)[:LOOKED_AT] for right in (True, False)])
        weights = to_host(trained.model.attention_weights(pixels[rows])[-1])[:, :, 0, 1:].mean(axis=1)
        images, maps = (
            array.reshape(len(rows), side, side) for array, side in ((pixels[rows], SIDE), (weights, SIDE // PATCH))
        )
        names = [f"{digits[row]}, read as {guesses[row]}" for row in rows]
        title = "digits: where [CLS] looks in the last layer, mean of all heads"
        plot_images(images, maps, names, path, title)
        return [*super().draw(trained, folder), path]
