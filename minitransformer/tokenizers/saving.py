"""Tokenizers as files of JSON, to be read by people too."""

import json
from pathlib import Path

from minitransformer.checks import check_choice
from minitransformer.files import written_whole
from minitransformer.tokenizers.byte_pair import BytePairTokenizer
from minitransformer.tokenizers.characters import CharacterTokenizer

FORMAT = "minitransformer-tokenizer-1"
_KINDS = {kind.kind: kind for kind in (CharacterTokenizer, BytePairTokenizer)}


def save_tokenizer(path, tokenizer):
    """Write `tokenizer` to `path` as JSON, one token or merge a line.

    Written beside it first and then renamed, so that a reader never finds half a file.
    """
    content = json.dumps({"format": FORMAT, **tokenizer.to_dict()}, ensure_ascii=False, indent=1)
    with written_whole(path) as partial:
        # what has no UTF-8, a lone surrogate, becomes \udcff: that is how JSON writes it, too
        partial.write_bytes(content.encode(errors="backslashreplace") + b"\n")


def load_tokenizer(path):
    """The tokenizer that was saved at `path`, of whatever kind.

    Raises ValueError, naming the path, if the file is not one that `save_tokenizer` wrote, OSError if there is none.
    """
    if not Path(path).is_file():
        raise FileNotFoundError(f"there is no file {path}")
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise ValueError(f"its format is not {FORMAT}")
        return tokenizer_from_dict(content)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not a tokenizer of minitransformer: {error}") from error


def tokenizer_from_dict(content):
    """The tokenizer whose `to_dict` gave `content`. Raises ValueError for what none of them can have given."""
    try:
        return _KINDS[check_choice("kind", content["kind"], tuple(_KINDS))].from_dict(content)
    except KeyError as error:
        raise ValueError(f"it has no {error}") from error
    except TypeError as error:
        raise ValueError(str(error)) from error
