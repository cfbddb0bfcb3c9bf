"""Audit what a reader delivered: every sample once, in the order asked for.

The digest of a set of samples is the sum of their numbers, each mixed, modulo 2^64: the digests of
ranks add up to that of the whole set, whatever the order. The order has a digest of its own.
"""

from __future__ import annotations

import hashlib
from array import array
from collections import Counter
from typing import Any, Dict, Iterable, List, Sequence

from harness.worker.contracts import Refused

_WHOLE = 2**64 - 1


class WrongDelivery(Refused):
    """Say what a reader dropped, doubled or reordered; nothing of that trial is a result."""


def digest(samples: Iterable[int]) -> int:
    """Digest a set of samples; digests of disjoint sets add up, modulo 2^64."""
    total = 0
    for sample in samples:  # the finaliser of SplitMix64 (Steele et al. 2014)
        mixed = (sample + 0x9E3779B97F4A7C15) & _WHOLE
        mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _WHOLE
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _WHOLE
        total += mixed ^ (mixed >> 31)
    return total & _WHOLE


def audited(
    asked: Sequence[int], delivered: Sequence[int], *, keeps_order: bool = True
) -> Dict[str, Any]:
    """Give what the epoch event says of a delivery; refuse one that is not what was asked for."""
    if not delivered:
        raise WrongDelivery("the reader delivered nothing")
    if Counter(delivered) != Counter(asked):
        raise WrongDelivery(_difference(asked, delivered))
    if keeps_order and list(delivered) != list(asked):
        at = next(at for at, pair in enumerate(zip(asked, delivered)) if pair[0] != pair[1])
        raise WrongDelivery(
            "the reader changed the order: sample {} came where {} was asked for, at place {} "
            "of {}".format(delivered[at], asked[at], at, len(asked))
        )
    order = hashlib.sha256(array("Q", delivered).tobytes()).hexdigest()[:16]
    return {
        "samples": len(delivered),
        "digest": "{:016x}".format(digest(delivered)),
        "order": order,
    }


def _difference(asked: Sequence[int], delivered: Sequence[int]) -> str:
    wanted, came = Counter(asked), Counter(delivered)
    missing = sorted((wanted - came).elements())
    extra = sorted((came - wanted).elements())
    said: List[str] = []
    if missing:
        said.append("{} missing ({})".format(len(missing), _some(missing)))
    if extra:
        said.append("{} too many ({})".format(len(extra), _some(extra)))
    return "the reader delivered {} samples where {} were asked for: {}".format(
        len(delivered), len(asked), ", ".join(said)
    )


def _some(samples: Sequence[int]) -> str:
    return ", ".join(map(str, samples[:3])) + (" …" if len(samples) > 3 else "")
