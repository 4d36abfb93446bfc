"""Tokenizers as files of JSON, to be read by people too.

The last line is a checksum of the others, so that a file of which one bit has changed is refused. Who changes a file on
purpose takes that line away: a file without it is read as it is.
"""

import json
import re

from minitransformer.checks import check_choice, check_names
from minitransformer.files import checksum, read_bytes, written_whole
from minitransformer.tokenizers.byte_pair import BytePairTokenizer
from minitransformer.tokenizers.characters import CharacterTokenizer

FORMAT = "minitransformer-tokenizer-1"
_KINDS = {kind.kind: kind for kind in (CharacterTokenizer, BytePairTokenizer)}


def save_tokenizer(path, tokenizer):
    """Write `tokenizer` to `path` as JSON, one token or merge a line.

    Written beside it first and then renamed, so that a reader never finds half a file.
    """
    content = {"format": FORMAT, **tokenizer.to_dict()}
    text = json.dumps({**content, "checksum": _checksum(content)}, ensure_ascii=False, indent=1)
    with written_whole(path) as partial:
        # what has no UTF-8, a lone surrogate, becomes \udcff: that is how JSON writes it, too
        partial.write_bytes(text.encode(errors="backslashreplace") + b"\n")


def load_tokenizer(path):
    """The tokenizer that was saved at `path`, of whatever kind.

    Raises ValueError, naming the path, if the file is not one that `save_tokenizer` wrote, or has changed since, and
    OSError if there is none.
    """
    data = read_bytes(path)
    try:
        content = json.loads(data.decode("utf-8"))
        _check_format(content)
        if "checksum" in content and content.pop("checksum") != _checksum(content):
            raise ValueError("its checksum does not match what is in it: take the checksum away if you have changed it")
        tokenizer = tokenizer_from_dict(content)
        check_names("its fields do not fit its kind", content, {"format": FORMAT, **tokenizer.to_dict()})
        return tokenizer
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not a tokenizer of minitransformer: {error}") from error


def _check_format(content):
    """ValueError unless the format is the one of this version."""
    version = content.get("format") if isinstance(content, dict) else None
    if version == FORMAT:
        return
    newer = isinstance(version, str) and re.fullmatch(r"minitransformer-tokenizer-\d{1,9}", version, re.ASCII)
    if newer and int(version.rpartition("-")[2]) > int(FORMAT.rpartition("-")[2]):
        raise ValueError(f"its format is {version}, of a newer minitransformer, and not {FORMAT}: upgrade to read it")
    raise ValueError(f"its format is not {FORMAT}")


def _checksum(content):
    return checksum({"content": json.dumps(content, sort_keys=True)})


def tokenizer_from_dict(content):
    """The tokenizer whose `to_dict` gave `content`. Raises ValueError for what none of them can have given."""
    try:
        return _KINDS[check_choice("kind", content["kind"], tuple(_KINDS))].from_dict(content)
    except KeyError as error:
        raise ValueError(f"it has no {error}") from error
    except TypeError as error:
        raise ValueError(str(error)) from error
