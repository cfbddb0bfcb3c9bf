"""Draw texts of tokens whose frequencies follow Zipf's law, alike in every framework.

How fast a table is read depends on which rows are: a few of them often and most of them seldom, as
in language. Token n (from 0) comes 1 / (n + 1) times as often as the first, which is also how
vocabularies made by merging pairs are ordered, roughly.
"""

from __future__ import annotations

import random
from array import array
from itertools import accumulate
from typing import NamedTuple, Tuple


class Texts(NamedTuple):
    """A batch of texts, flat: (samples, length) tokens, and of each the one that follows it."""

    tokens: array[int]
    following: array[int]


def texts(seed: int, shape: Tuple[int, ...], vocabulary: int) -> Texts:
    """Draw a batch of texts, each one token longer than what is fed of it."""
    samples, length = shape
    drawn = zipf(seed, samples * (length + 1), vocabulary)
    found = Texts(array("q"), array("q"))
    for start in range(0, len(drawn), length + 1):
        found.tokens.extend(drawn[start : start + length])
        found.following.extend(drawn[start + 1 : start + 1 + length])
    return found


def zipf(seed: int, count: int, vocabulary: int) -> array[int]:
    """Draw so many tokens."""
    weights = _cumulative(vocabulary)
    drawn = random.Random(seed).choices(range(vocabulary), cum_weights=weights, k=count)
    return array("q", drawn)


def _cumulative(vocabulary: int) -> Tuple[float, ...]:
    return tuple(accumulate(1 / rank for rank in range(1, vocabulary + 1)))
