"""Say in which order a rank reads the samples of an epoch: a pure function of the seed.

none      as they are stored; ranks take turns
global    all samples permuted anew in each epoch; ranks take turns
file      files permuted, each rank taking every size-th of them, and the samples permuted within
          each buffer of so many (Lee et al. 2021): neighbours are read together, in large requests

Whoever reads, the order is the same; so an asynchronous reader can be held against a synchronous
one sample by sample.
"""

from __future__ import annotations

from random import Random
from typing import List, Sequence

SHUFFLES = ("none", "global", "file")


def epoch_order(
    held: Sequence[int],
    *,
    shuffle: str,
    seed: int,
    epoch: int,
    rank: int = 0,
    size: int = 1,
    buffer_samples: int = 0,
) -> List[int]:
    """Give a rank's samples of one epoch in order; ``held`` is how many each file holds."""
    drawn = Random("{}/{}".format(seed, epoch))
    if shuffle == "none":
        return list(range(rank, sum(held), size))
    if shuffle == "global":
        everything = list(range(sum(held)))
        drawn.shuffle(everything)
        return everything[rank::size]
    if shuffle != "file":
        raise ValueError("there is no shuffle '{}'; known: {}".format(shuffle, SHUFFLES))
    own = [sample for file in rank_files(held, drawn, rank, size) for sample in file]
    if buffer_samples:
        within = Random("{}/{}/{}".format(seed, epoch, rank))
        for start in range(0, len(own), buffer_samples):
            buffer = own[start : start + buffer_samples]
            within.shuffle(buffer)
            own[start : start + buffer_samples] = buffer
    return own


def rank_files(held: Sequence[int], drawn: Random, rank: int, size: int) -> List[range]:
    """Permute the files and give those of one rank, each as the samples that it holds."""
    files, first = [], 0
    for count in held:
        files.append(range(first, first + count))
        first += count
    drawn.shuffle(files)
    return files[rank::size]
