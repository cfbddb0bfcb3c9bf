"""Name what is wrong with texts: their tokens, and the token that is asked for behind each.

A token is a number without neighbours: a text is the one in the files or another, never near it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from harness.gate.feed.known_samples import Array, KnownSamples, thinned


def name(known: KnownSamples, row: Array) -> str:
    """Say how the tokens of a text differ from those of the files; ``row`` is thinned."""
    if np.ptp(row) == 0:
        return f"every token is {row[0]:g}"
    texts = known.thinned()
    if any(np.array_equal(_exchanged(one), row) for one in texts):
        return "the bytes of each token are exchanged (big-endian for little-endian)"
    if any(np.array_equal(thinned(known, known.input(n)[::-1]), row) for n in range(known.samples)):
        return "texts run backwards"
    every, length = known.tokens().astype(np.float32), known.shape[0]
    for at in range(len(every) - length + 1):
        if at % length and np.array_equal(thinned(known, every[at : at + length]), row):
            late = at % length
            return f"a text begins {late} token{'s' if late > 1 else ''} late, at token {at}"
    return "the tokens are those of no text in the files"


def targets(found: Array, expected: Array, fed: Array, numbers: Sequence[int]) -> str | None:
    """Say what is wrong with the tokens that are asked for; ``fed`` are those of the texts."""
    if found.shape != expected.shape:
        return f"a text has {found.shape[1]} labels, not {expected.shape[1]}"
    wrong = np.any(found != expected, 1)
    if not wrong.any():
        return None
    if np.ptp(found) == 0:
        return f"every label is {found.flat[0]:g}"
    if np.array_equal(found, fed):
        return "labels are not shifted: the token that is fed is asked for, not the one behind it"
    if np.array_equal(found[:, :-1], expected[:, 1:]):
        return "labels are shifted by two: the token behind the next one is asked for"
    if np.array_equal(found, _exchanged(expected)):
        return "the bytes of each label are exchanged (big-endian for little-endian)"
    known = {tuple(one) for one in expected.tolist()}
    at = int(np.argmax(wrong))
    place = int(np.argmax(found[at] != expected[at]))
    first = (
        f"in text {numbers[at]} {found[at][place]:g} is asked for behind {fed[at][place]:g}, and "
        f"{expected[at][place]:g} comes there"
    )
    if all(tuple(one) in known for one in found.tolist()):
        return f"labels are those of other texts: {first}"
    return first


def _exchanged(tokens: Array) -> Array:
    return tokens.astype(np.uint16).byteswap().astype(tokens.dtype)
