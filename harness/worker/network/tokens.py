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
    """Draw a rank's batch, and as its targets the token behind each, or what two heads are asked.

    A text is longer than what is fed of it: by one token, or by those that the first head is asked
    for. The second head is asked whether a pair of sentences belongs together; every second does.
    """
    assert feed.vocabulary is not None
    samples, (length,) = feed.batch_per_rank, feed.input
    found = Texts(array("q"), array("q"))
    heads = feed.targets if isinstance(feed.targets, TokenAndPairClasses) else None
    each = length + (1 if heads is None else heads.length)
    drawn = zipf(feed.seed, samples * each, feed.vocabulary)
    for sample in range(samples):
        text = drawn[sample * each : (sample + 1) * each]
        found.tokens.extend(text[:length])
        found.targets.extend(text[1:] if heads is None else [*text[length:], sample % 2])
    return found


def zipf(seed: int, count: int, vocabulary: int) -> array[int]:
    """Draw so many tokens."""
    drawn = random.Random(seed).choices(range(vocabulary), cum_weights=weights(vocabulary), k=count)
    return array("q", drawn)


def weights(vocabulary: int) -> Tuple[float, ...]:
    """Give how often each token and all before it come together."""
    return tuple(accumulate(1 / rank for rank in range(1, vocabulary + 1)))
