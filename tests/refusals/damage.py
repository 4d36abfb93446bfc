"""Damage to the bytes of a file: what disks, networks and editors do, and what somebody might do on purpose."""

import json
import struct

NUMBERS = (0, 1, 7, 8, 2**31, 2**32, 2**40, 2**63 - 1, 2**64 - 1)
VALUES = (None, True, -1, 0, 1, 2**53, 10**30, 1e999, "", "x", "\ud800", [], [1], {}, {"a": 1}, [[[[]]]])


def damage(rng, data):
    """`data` with one to three kinds of damage, most often one."""
    for _ in range((1, 1, 1, 2, 3)[rng.integers(5)]):
        data = KINDS[rng.integers(len(KINDS))](rng, data)
    return data


def flip_bits(rng, data):
    """One to eight bits, anywhere."""
    if not data:
        return data
    changed = bytearray(data)
    for _ in range(rng.integers(1, 9)):
        changed[rng.integers(len(changed))] ^= 1 << rng.integers(8)
    return bytes(changed)


def cut(rng, data):
    """The end is missing."""
    return data[: rng.integers(len(data) + 1)]


def drop(rng, data):
    """A piece in the middle is missing."""
    start, stop = sorted(rng.integers(len(data) + 1, size=2))
    return data[:start] + data[stop:]


def insert(rng, data):
    """A few bytes come in between: any, or such as mean something in text."""
    texts = (b"\0", b"\r\n", b"\xef\xbb\xbf", b'"', b"\\", b"{", b"]", b"\xff", b"\xed\xa0\x80", bytes(1000))
    extra = texts[rng.integers(len(texts))] if rng.random() < 0.5 else rng.bytes(int(rng.integers(1, 40)))
    place = rng.integers(len(data) + 1)
    return data[:place] + extra + data[place:]


def change_length(rng, data):
    """Another number in the first eight bytes, which say how long the header is."""
    (length,) = struct.unpack("<Q", data[:8].ljust(8, b"\0"))
    number = NUMBERS[rng.integers(len(NUMBERS))] if rng.random() < 0.5 else max(0, length + int(rng.integers(-9, 10)))
    return struct.pack("<Q", number % 2**64) + data[8:]


def edit_json(rng, data):
    """One value of the JSON in the file is replaced, renamed or taken away; the length in front is made right."""
    start, stop = json_of(data)
    try:
        content = json.loads(data[start:stop])
    except (ValueError, RecursionError):
        return data
    text = json.dumps(edited(rng, content)).encode()
    return (struct.pack("<Q", len(text)) if start else b"") + text + data[stop:]


def edited(rng, content):
    """`content` with one change, at any depth; JSON inside a text counts as depth."""
    if isinstance(content, str) and content[:1] in ("{", "["):
        try:
            return json.dumps(edited(rng, json.loads(content)))
        except (ValueError, RecursionError):
            return VALUES[rng.integers(len(VALUES))]
    if not isinstance(content, dict | list) or not content or rng.random() < 0.1:
        return VALUES[rng.integers(len(VALUES))]
    keys = list(content) if isinstance(content, dict) else list(range(len(content)))
    key, fate = keys[rng.integers(len(keys))], rng.random()
    changed = dict(content) if isinstance(content, dict) else list(content)
    value = changed.pop(key)
    if fate < 0.1:
        return changed
    if isinstance(changed, list):
        changed.insert(key, edited(rng, value))
    else:
        changed[f"{key}x" if fate < 0.2 else key] = edited(rng, value)
    return changed


def json_of(data):
    """Where the JSON of the file stands: all of it, or what comes behind the length of a header."""
    if data[:1] == b"{":
        return 0, len(data)
    (length,) = struct.unpack("<Q", data[:8].ljust(8, b"\0"))
    return 8, 8 + min(length, len(data))


def respace(rng, data):
    """The JSON in the file is laid out otherwise, which changes nothing that it says."""
    start, stop = json_of(data)
    try:
        text = json.dumps(json.loads(data[start:stop]), indent=int(rng.integers(0, 4))).encode()
    except (ValueError, RecursionError):
        return data
    return (struct.pack("<Q", len(text)) if start else b"") + text + data[stop:]


KINDS = (
    flip_bits,
    cut,
    drop,
    insert,
    change_length,
    edit_json,
    edit_json,
    respace,
)
