"""From text to token ids and back: by characters, or by byte pairs. All of it stays on the host.

Reading order: `base` (what every tokenizer does), `characters`, then `byte_pair` and the files it uses: `words` (splits
a text into words), `visible` (bytes as letters), `byte_merging` and `byte_pair_training`. `byte_level` reads GPT-2's,
and `word_piece` BERT's.
"""

from minitransformer.tokenizers.base import Tokenizer
from minitransformer.tokenizers.byte_level import AddedToken, ByteLevelTokenizer
from minitransformer.tokenizers.byte_pair import BytePairTokenizer
from minitransformer.tokenizers.characters import CharacterTokenizer
from minitransformer.tokenizers.saving import load_tokenizer, save_tokenizer, tokenizer_from_dict
from minitransformer.tokenizers.word_piece import WordPieceTokenizer

__all__ = [
    "AddedToken",
    "ByteLevelTokenizer",
    "BytePairTokenizer",
    "CharacterTokenizer",
    "Tokenizer",
    "WordPieceTokenizer",
    "load_tokenizer",
    "save_tokenizer",
    "tokenizer_from_dict",
]
