"""Compare the order in which ranks were fed samples with the one asked for, and name what differs.

First what holds whatever the seed is (each sample once, ranks apart, epochs unlike each other),
which has plain names; then every place, against ``harness/worker/input/order.py``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, zip_longest

_Samples = list[int]
Order = list[_Samples]
"""The samples of one rank: epochs, and what was fed in each, in order."""


@dataclass(frozen=True)
class Asked:
    """What was asked for."""

    batch: int
    shuffle: str
    orders: Sequence[Sequence[Sequence[int]]]
    """The samples of each rank in each epoch; those of whole batches."""
    keeps_order: bool = True
    """Whether the reader promises that very order, not just those samples."""


def doubled(fed: Sequence[Order], asked: Asked) -> str | None:
    """Say what is fed more than once: a batch, a sample, the share of another rank."""
    checks = (_repeated, _doubled, _shared)
    return next(chain.from_iterable(check(fed, asked) for check in checks), None)


def misplaced(fed: Sequence[Order], asked: Asked, refused: str | None = None) -> str | None:
    """Say what comes in another order, or not at all; ``refused`` is what the trial's own audit
    says of it.
    """
    told = () if refused is None else (refused,)
    checks = (_unshuffled(fed, asked), _alike(fed, asked), told)
    return next(chain(*checks, _missing(fed, asked), _misplaced(fed, asked)), None)


def _epochs(fed: Sequence[Order], asked: Asked) -> Iterator[tuple[int, int, _Samples, _Samples]]:
    """Give each epoch that was asked for or fed, with what came and what was due."""
    for rank, (order, wanted) in enumerate(zip(fed, asked.orders, strict=True)):
        for epoch, (came, due) in enumerate(zip_longest(order, wanted, fillvalue=())):
            yield rank, epoch, list(came), list(due)


def _where(fed: Sequence[Order], rank: int, epoch: int) -> str:
    return f"epoch {epoch}" + (f" of rank {rank}" if len(fed) > 1 else "")


def _repeated(fed: Sequence[Order], asked: Asked) -> Iterator[str]:
    for order in fed:
        samples = [sample for epoch in order for sample in epoch]
        size = asked.batch
        batches = {tuple(samples[at : at + size]) for at in range(0, len(samples), size)}
        if len(set(samples)) == 1 and len(samples) > 1:
            yield f"every sample that is fed is sample {samples[0]} of the files"
        if len(batches) == 1 and len(samples) > size:
            yield "the first batch is fed again and again"


def _doubled(fed: Sequence[Order], asked: Asked) -> Iterator[str]:
    for rank, epoch, samples, _ in _epochs(fed, asked):
        for sample, times in Counter(samples).items():
            if times > 1:
                often = "twice" if times == 2 else f"{times} times"
                yield f"sample {sample} is fed {often} in {_where(fed, rank, epoch)}"


def _shared(fed: Sequence[Order], _: Asked) -> Iterator[str]:
    for (one, first), (other, second) in combinations(enumerate(fed), 2):
        for epoch, (mine, theirs) in enumerate(zip(first, second, strict=False)):
            both = sorted(set(mine) & set(theirs))
            if both:
                yield (
                    f"ranks {one} and {other} are fed the same samples: {len(both)} of "
                    f"{len(mine)} in epoch {epoch}, such as sample {both[0]}"
                )


def _unshuffled(fed: Sequence[Order], asked: Asked) -> Iterator[str]:
    in_order = (samples == sorted(samples) for _, _, samples, _ in _epochs(fed, asked))
    if asked.shuffle != "none" and all(in_order):
        yield f"samples come in the order of the files, where shuffle = {asked.shuffle} is asked"


def _alike(fed: Sequence[Order], asked: Asked) -> Iterator[str]:
    for order in fed:
        is_one = all(epoch == order[0] for epoch in order[1:])
        if asked.shuffle != "none" and len(order) > 1 and is_one:
            yield "every epoch has the same order"


def _missing(fed: Sequence[Order], asked: Asked) -> Iterator[str]:
    for rank, epoch, samples, wanted in _epochs(fed, asked):
        where = _where(fed, rank, epoch)
        if not samples:
            yield f"{where} has no batch"
        if len(samples) != len(wanted):
            yield (
                f"{where} has {len(samples) // asked.batch} batches of {asked.batch}, "
                f"not {len(wanted) // asked.batch}"
            )
        if missing := sorted(set(wanted) - set(samples)):
            yield f"sample {missing[0]} is left out of {where}"


def _misplaced(fed: Sequence[Order], asked: Asked) -> Iterator[str]:
    for rank, epoch, samples, wanted in _epochs(fed, asked):
        if asked.keeps_order and samples != wanted:
            pairs = zip(samples, wanted, strict=True)
            at = next(at for at, (came, due) in enumerate(pairs) if came != due)
            whose = "of the files" if asked.shuffle == "none" else "that the seed gives"
            yield (
                f"samples do not come in the order {whose}: sample {samples[at]} comes where "
                f"{wanted[at]} is due, in {_where(fed, rank, epoch)}"
            )
