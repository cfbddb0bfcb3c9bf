"""Hold the examination of the feed to its purpose: each planted fault is caught and named."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.gate.feed.planted import in_order, in_texts, on_jax, on_tensorflow, on_torch
from tests.gate.feed.planted.feed_fault import FeedFault

pytestmark = pytest.mark.framework

PLANTED: dict[str, Mapping[str, FeedFault]] = {
    "torch": {**on_torch.FAULTS, **in_order.FAULTS, **in_texts.ON_TORCH, **in_texts.WINDOWS},
    "jax": {**on_jax.FAULTS, **in_order.FAULTS, **in_texts.ON_JAX},
    "tensorflow": {**on_tensorflow.FAULTS, **in_texts.ON_TENSORFLOW},
    "keras": {**on_tensorflow.FAULTS, **in_texts.ON_TENSORFLOW},
}
IN_CI = {
    ("torch", "channels in reverse order"),
    ("torch", "no scaling"),
    ("torch", "labels one too high"),
    ("torch", "the first batch for ever"),
    ("torch", "labels not shifted"),
    ("torch", "bytes in the other order"),
    ("jax", "one order for every epoch"),
    ("jax", "a sample dropped"),
}
"""The others are left to the long form: each takes a worker of its own."""


def every_fault() -> Iterator[Any]:
    """Name each framework with each of its faults."""
    for name, faults in PLANTED.items():
        for fault in faults:
            marks = [] if (name, fault) in IN_CI else [pytest.mark.long]
            yield pytest.param(name, fault, id=f"{name}: {fault}", marks=marks)


@pytest.mark.planted
@pytest.mark.parametrize(("name", "fault"), list(every_fault()))
def test_a_fault_of_the_feed_is_caught_and_named(name, fault, fed, planted) -> None:
    one = PLANTED[name][fault]
    part = fed(name, one.workload, {one.file: one.change}, **one.factors)
    found = part.why if part.finding is None else part.finding.differs
    planted(name, fault, "what it is fed", found)
    assert found is not None
    assert re.search(one.words, found), found
