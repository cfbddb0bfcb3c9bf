"""Steps that leave something out where the loss is small: from every state that is loaded, where
it is large, they are whole again.
"""

from __future__ import annotations

import re

import pytest

from harness.verdicts.credibility.amount import judge_amount
from tests.gate.proof.free_checks import streams_of
from tests.gate.proof.planted import on_jax, on_torch
from workloads import tinycnn

pytestmark = [pytest.mark.framework, pytest.mark.planted]

# 2.291 at the first start, 2.301 or more at those of the updates
SMALL = "2.29"
STOPPED = {
    "torch": (
        on_torch.FOLDER + "training.py",
        on_torch.UPDATE,
        f"{on_torch.PASSES}        if float(loss) > {SMALL}:\n    {on_torch.OPTIMISER_STEP}",
    ),
    "jax": (
        on_jax.FOLDER + "adapter.py",
        on_jax.OURS,
        f"if self._loss is None or float(self._loss) > {SMALL}:\n                {on_jax.OURS}",
    ),
}
HELD = f"        if float(loss) > {SMALL}:{on_torch.HOLDING}"


@pytest.mark.parametrize("name", ["torch", pytest.param("jax", marks=pytest.mark.long)])
def test_a_step_that_no_longer_updates_is_refused(name, prove, planted) -> None:
    file, before, after = STOPPED[name]
    with pytest.raises(AssertionError) as caught:
        prove(name, tinycnn, {file: (before, after)})
    named = re.search("StandsStill: (.* one more step changes nothing)", str(caught.value))
    by, found = "where the measured phase ended", named and named[1]
    planted(name, "no update where the loss is small", by, found)
    assert found is not None


def test_a_gradient_that_is_remembered_is_counted(prove, places, planted) -> None:
    file = on_torch.FOLDER + "training.py"
    prove("torch", tinycnn, {file: (on_torch.BACKWARD, HELD)})  # whole where it is examined
    found = [one.evidence for one in judge_amount(streams_of(places[-1]))]
    fault = "a backward pass only where the loss is large"
    planted("torch", fault, "multiplications", found[0] if found else None)
    assert "% less than" in found[0]
