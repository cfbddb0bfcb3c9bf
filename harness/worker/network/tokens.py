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

from harness.worker.feed import Feed, TokenAndPairClasses


class Texts(NamedTuple):
    """A batch of texts, flat: (samples, length) tokens, and as many rows of targets."""

    tokens: array[int]
    targets: array[int]


def texts(feed: Feed) -> Texts:
    """Draw a rank's batch, and of each token the one that follows it, or what two heads are asked.

    A text is one token longer than what is fed of it. Two heads are asked for tokens of their own,
    and whether a pair of sentences belongs together: of every second sample.
    """
    assert feed.vocabulary is not None
    samples, (length,) = feed.batch_per_rank, feed.input
    found = Texts(array("q"), array("q"))
    if isinstance(feed.targets, TokenAndPairClasses):
        asked = feed.targets.length
        drawn = zipf(feed.seed, samples * (length + asked), feed.vocabulary)
        for sample in range(samples):
            start = sample * (length + asked)
            found.tokens.extend(drawn[start : start + length])
            found.targets.extend(drawn[start + length : start + length + asked])
            found.targets.append(sample % 2)
        return found
    drawn = zipf(feed.seed, samples * (length + 1), feed.vocabulary)
    for start in range(0, len(drawn), length + 1):
        found.tokens.extend(drawn[start : start + length])
        found.targets.extend(drawn[start + 1 : start + 1 + length])
    return found


def zipf(seed: int, count: int, vocabulary: int) -> array[int]:
    """Draw so many tokens."""
    weights = _cumulative(vocabulary)
    drawn = random.Random(seed).choices(range(vocabulary), cum_weights=weights, k=count)
    return array("q", drawn)


def _cumulative(vocabulary: int) -> Tuple[float, ...]:
    return tuple(accumulate(1 / rank for rank in range(1, vocabulary + 1)))
