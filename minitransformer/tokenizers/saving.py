"""Tokenizers as JSON files that people can read.

The last line is a checksum of the others, so a file with a single changed bit is refused. To change a file on purpose,
delete that line: a file without a checksum is read as it is.
"""

import json
import os
import re
from typing import Any

from minitransformer.checks import check_choice, check_names
from minitransformer.system.files import atomic_write, checksum, read_bytes
from minitransformer.tokenizers.base import Tokenizer
from minitransformer.tokenizers.byte_level import ByteLevelTokenizer
from minitransformer.tokenizers.byte_pair import BytePairTokenizer
from minitransformer.tokenizers.characters import CharacterTokenizer
from minitransformer.tokenizers.word_piece import WordPieceTokenizer

FORMAT = "minitransformer-tokenizer-1"
_KINDS: dict[str, type[Tokenizer]] = {
    kind.kind: kind for kind in (CharacterTokenizer, BytePairTokenizer, ByteLevelTokenizer, WordPieceTokenizer)
}


def save_tokenizer(path: str | os.PathLike, tokenizer: Tokenizer) -> None:
    """Write `tokenizer` to `path` as JSON, one token or merge per line.

    The file is written under a temporary name and then renamed, so a reader never finds half a file.
    """
    content = {"format": FORMAT, **tokenizer.to_dict()}
    text = json.dumps({**content, "checksum": _checksum(content)}, ensure_ascii=False, indent=1)
    with atomic_write(path) as partial:
        # a lone surrogate, which UTF-8 cannot express, becomes \udcff, as JSON writes it
        partial.write_bytes(text.encode(errors="backslashreplace") + b"\n")


def load_tokenizer(path: str | os.PathLike) -> Tokenizer:
    """The tokenizer saved at `path`, of any kind.

    Raises ValueError, naming the path, if `save_tokenizer` did not write the file or it has changed since, and OSError
    if it is missing.
    """
    data = read_bytes(path)
    try:
        content = json.loads(data.decode("utf-8"))
        _check_format(content)
        if "checksum" in content and content.pop("checksum") != _checksum(content):
            raise ValueError("its checksum does not match its content: delete the checksum if you changed it")
        tokenizer = tokenizer_from_dict(content)
        check_names("its fields do not fit its kind", content, {"format": FORMAT, **tokenizer.to_dict()})
        return tokenizer
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not a minitransformer tokenizer: {error}") from error


def _check_format(content: Any) -> None:
    """ValueError unless the format is that of this version."""
    version: Any = content.get("format") if isinstance(content, dict) else None
    if version == FORMAT:
        return
    newer = isinstance(version, str) and re.fullmatch(r"minitransformer-tokenizer-\d{1,9}", version, re.ASCII)
    if newer and int(version.rpartition("-")[2]) > int(FORMAT.rpartition("-")[2]):
        raise ValueError(f"its format is {version}, and this version reads {FORMAT}: upgrade to read it")
    raise ValueError(f"its format is not {FORMAT}")


def _checksum(content: dict[str, Any]) -> str:
    return checksum({"content": json.dumps(content, sort_keys=True)})


def tokenizer_from_dict(content: dict[str, Any]) -> Tokenizer:
    """Build a tokenizer from the result of its `to_dict`. Raises ValueError for any other content."""
    try:
        return _KINDS[check_choice("kind", content["kind"], tuple(_KINDS))].from_dict(content)
    except KeyError as error:
        raise ValueError(f"the field {error} is missing") from error
    except TypeError as error:
        raise ValueError(str(error)) from error
