"""What is examined is the program that was timed: it is compiled once."""

from __future__ import annotations

import re

import pytest

from tests.gate.proof.planted import on_jax
from workloads import tinycnn

pytestmark = [pytest.mark.framework, pytest.mark.planted]

LOADED = "self.trained = self._strategy.replicate(new)"
WEAK = LOADED + "._replace(step=0)"


def test_a_step_that_is_compiled_again_where_it_is_examined_is_refused(prove, planted) -> None:
    with pytest.raises(AssertionError) as caught:
        prove("jax", tinycnn, {on_jax.FOLDER + "adapter.py": (LOADED, WEAK)})
    named = re.search("CompiledAgain: (the step was compiled to 2 programs)", str(caught.value))
    found = named and named[1]
    planted("jax", "a state of other types, where it is loaded", "the proof", found)
    assert found is not None
