"""The Transformer of "Attention Is All You Need", by hand, in NumPy.

Every layer of the paper (Vaswani et al. 2017) is here forward and backward,
without autograd. This trains a model to reverse words, and tests it on 200
words that it has never seen. It takes half a minute:

    import numpy as np
    import minitransformer as mt

    task = mt.get_task("reverse")
    model = mt.Transformer(mt.named_config("tiny", len(task.vocabulary)))
    schedule = lambda step: mt.noam(step, d_model=64, warmup=100, factor=0.3)
    settings = mt.TrainingSettings(steps=1000)
    mt.train(model, task, schedule=schedule, settings=settings)

    words = task.held_out_batch(np.random.default_rng(0), 200)
    answers = mt.greedy_decode(model, words.source, max_new_tokens=14)
    print(mt.exact_match(answers, words.targets))
    print(task.decode(words.source[0]), "->", task.decode(answers[0]))

`train` repeats one step, and puts threads, micro batches or a search for NaN
around its `gradients`, which are forward, loss and backward. `training_step`
has them plain, for any model and loss that follow the protocol of `Layer`:

    def training_step(model, loss_fn, optimizer, batch, rng=None, max_norm=1.0):
        gradients = PlainGradients(model, loss_fn, rng)
        check = partial(check_finite, model=model)
        measured, norm = step_with(gradients, optimizer, batch, max_norm, check=check)
        return measured.loss, norm

    def step_with(gradients, optimizer, batch, max_norm=1.0,
                  measure=False, check=check_finite, norm_of=grad_norm):
        optimizer.zero_grad()
        measured = gradients(batch, measure=measure)
        norm = norm_of(optimizer.parameters)
        check(measured.loss, norm)
        optimizer.step(scale=clip_factor(norm, max_norm))
        return measured, norm

The names that most programs need are here; `help` explains each of them:

    models          Transformer, GPT, BERT, Seq2Seq
    configurations  TransformerConfig (every choice is a field; Rope,
                    Windowed, Strided, Experts are choices with numbers),
                    named_config, gpt_config, bert_config, t5_config,
                    Seq2SeqConfig, named_seq2seq_config
    data            get_task, TextTask, MaskedTask, TranslationTask, Corpus,
                    Batch, load_text, load_shakespeare, load_python_topics
    tokenizers      CharacterTokenizer, BytePairTokenizer, load_tokenizer,
                    save_tokenizer, tokenizer_from_dict
    training        train, training_step, TrainingSettings, Adam, Muon,
                    noam, cosine, CrossEntropyLoss, AverageOfLast,
                    ExponentialAverage
    saving          save_checkpoint, load_checkpoint, Checkpointer, read_run,
                    load_huggingface, save_huggingface
    decoding        greedy_decode, beam_search, generate, translate, Greedy,
                    Sampling
    evaluation      exact_match, mean_loss, plot_attention
    your own layer  Layer, Parameter, check_layer
    NumPy or CuPy   xp, use_backend, to_device, to_host

Everything else is in the rooms, such as `functional` (pairs of forward and
backward functions), `layers` (the same with parameters), `inspection` and
`interop` (weights from PyTorch and Hugging Face). `data.Task` says what
`train` expects of data of your own. To read the code, begin with `core`,
then `functional`, then `layers`. The command line is
`minitransformer --help`.
"""

import importlib
from typing import TYPE_CHECKING, Any

from minitransformer.lazy import importer

if TYPE_CHECKING:  # for type checkers and editors; Python itself calls __getattr__ below
    from minitransformer.backend import to_device, to_host, use_backend, xp
    from minitransformer.config import Experts, Rope, Strided, Windowed
    from minitransformer.core import Layer, Parameter
    from minitransformer.data import (
        Batch,
        Corpus,
        MaskedTask,
        TextTask,
        TranslationTask,
        get_task,
        load_python_topics,
        load_shakespeare,
        load_text,
    )
    from minitransformer.decoding import Greedy, Sampling, generate, greedy_decode
    from minitransformer.decoding.search.beam import beam_search
    from minitransformer.decoding.search.translate import translate
    from minitransformer.evaluation import mean_loss
    from minitransformer.evaluation.exact_match import exact_match
    from minitransformer.gradcheck import check_layer
    from minitransformer.interop import load_huggingface, save_huggingface
    from minitransformer.models import (
        Seq2SeqConfig,
        Transformer,
        TransformerConfig,
        named_config,
        named_seq2seq_config,
        t5_config,
    )
    from minitransformer.models.before_2017.recurrent import Seq2Seq
    from minitransformer.models.since_2017.bert import BERT, bert_config
    from minitransformer.models.since_2017.gpt import GPT, gpt_config
    from minitransformer.plotting import plot_attention
    from minitransformer.tokenizers import (
        BytePairTokenizer,
        CharacterTokenizer,
        load_tokenizer,
        save_tokenizer,
        tokenizer_from_dict,
    )
    from minitransformer.training import (
        Adam,
        CrossEntropyLoss,
        Muon,
        TrainingSettings,
        cosine,
        noam,
        train,
        training_step,
    )
    from minitransformer.training.saving.averaging import AverageOfLast, ExponentialAverage
    from minitransformer.training.saving.checkpoint import load_checkpoint, save_checkpoint
    from minitransformer.training.saving.checkpointer import Checkpointer, read_run

__version__ = "0.5.0"

__all__ = [
    "BERT",
    "GPT",
    "Adam",
    "AverageOfLast",
    "Batch",
    "BytePairTokenizer",
    "CharacterTokenizer",
    "Checkpointer",
    "Corpus",
    "CrossEntropyLoss",
    "Experts",
    "ExponentialAverage",
    "Greedy",
    "Layer",
    "MaskedTask",
    "Muon",
    "Parameter",
    "Rope",
    "Sampling",
    "Seq2Seq",
    "Seq2SeqConfig",
    "Strided",
    "TextTask",
    "TrainingSettings",
    "Transformer",
    "TransformerConfig",
    "TranslationTask",
    "Windowed",
    "beam_search",
    "bert_config",
    "check_layer",
    "cosine",
    "exact_match",
    "generate",
    "get_task",
    "gpt_config",
    "greedy_decode",
    "load_checkpoint",
    "load_huggingface",
    "load_python_topics",
    "load_shakespeare",
    "load_text",
    "load_tokenizer",
    "mean_loss",
    "named_config",
    "named_seq2seq_config",
    "noam",
    "plot_attention",
    "read_run",
    "save_checkpoint",
    "save_huggingface",
    "save_tokenizer",
    "t5_config",
    "to_device",
    "to_host",
    "tokenizer_from_dict",
    "train",
    "training_step",
    "translate",
    "use_backend",
    "xp",
]

# searched in this order for the names above
_ROOMS = (
    "backend",
    "core",
    "config",
    "functional",
    "layers",
    "tokenizers",
    "models",
    "decoding",
    "data",
    "evaluation",
    "interop",
    "gradcheck",
    "training",
    "plotting",
)
_find = importer(__name__, __all__, _ROOMS)


def __getattr__(name: str) -> Any:
    """Import a room or one of the names above when it is used for the first time."""
    return importlib.import_module(f"{__name__}.{name}") if name in _ROOMS else _find(name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_ROOMS})
