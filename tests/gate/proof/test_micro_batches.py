"""A step that computes its batch at once, though micro-batches are asked, is not ranked.

Its update is the same, so no proof tells; what it multiplies comes once, not four times.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.verdicts.asked_vs_ran import contradictions
from tests.gate.proof import dropping
from tests.gate.proof.free_checks import streams_of
from tests.gate.proof.planted import at_once

pytestmark = pytest.mark.framework
FACTORS = {"accumulate": 4}
COMPILED = [("torch", True), ("tensorflow", True)]


def counted(places: Sequence[Path]) -> dict[str, Any]:
    """Give what the last trial said of its multiplications, and nothing else."""
    (stream,) = streams_of(places[-1])
    return {"multiplications": stream.facts["multiplications"]}


@pytest.mark.planted
@pytest.mark.parametrize("name", at_once.CHANGES)
def test_a_batch_that_is_computed_at_once_is_caught(name, prove, places, planted) -> None:
    file, change = at_once.CHANGES[name]
    prove(name, dropping, {file: change}, accumulate=4)
    found = contradictions(FACTORS, counted(places))
    named = str(found[0]).partition(" (")[0] if found else None
    planted(name, "micro-batches computed at once", "asked and ran", named)
    assert named == "asked for 4 micro-batches, a step ran in 1 part"
    assert all(one.is_grave for one in found)


@pytest.mark.parametrize(
    ("name", "compiled"), [*((name, False) for name in at_once.CHANGES), *COMPILED]
)
def test_micro_batches_that_ran_are_seen(name, compiled, prove, places) -> None:
    prove(name, dropping, accumulate=4, compiled=compiled)
    facts = counted(places)
    assert facts["multiplications"]["parts"] % 4 == 0
    assert contradictions(FACTORS, facts) == ()
