"""Every byte as a visible letter, and the order of the bytes in a vocabulary: both as in GPT-2 (Radford et al. 2019).

The 188 bytes that are printable in Latin-1 stay as they are. The other 68 get the code points from 256 on, in their
order: a space is "Ġ" (32 is the 33rd of the others) and a newline is "Ċ". So any token can be written in a text file.
"""

_PRINTABLE = (*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100))
BYTE_ORDER = (*_PRINTABLE, *(byte for byte in range(256) if byte not in _PRINTABLE))  # of their ids
_LETTERS = (*map(chr, _PRINTABLE), *map(chr, range(256, 256 + 256 - len(_PRINTABLE))))
_LETTER_OF = dict(zip(BYTE_ORDER, _LETTERS, strict=True))
_BYTE_OF = dict(zip(_LETTERS, BYTE_ORDER, strict=True))


def to_visible(data: bytes) -> str:
    """Bytes as text, one letter per byte."""
    return "".join([_LETTER_OF[byte] for byte in data])


def from_visible(letters: str) -> bytes:
    """The inverse of `to_visible`. Raises ValueError for a letter that stands for no byte."""
    for letter in letters:
        if letter not in _BYTE_OF:
            raise ValueError(f"{letter!r} in {letters!r} stands for no byte")
    return bytes([_BYTE_OF[letter] for letter in letters])
