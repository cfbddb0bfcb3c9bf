"""Count what the step that was timed multiplies, and what training takes, of one rank alone.

The activity counts its own step, after the measured phase, where its framework lets it: by the
operators that torch dispatches, by the text of XLA's compiled step. Only convolutions and products
count, each as it is stated, whatever algorithm computes it.
"""

from __future__ import annotations

from typing import Any, Dict

from harness.worker.contracts import door
from harness.worker.network.shapes import macs_of_step
from harness.worker.network.workload import Training


def counted(activity: Any, workload: Any, samples: int) -> Dict[str, Any]:
    """Give the fact; nothing where the activity does not count, or nothing is trained.

    Of a single sample compilers make something else than products, of a vector and a number.
    """
    count = door(activity, "multiplications")
    if count is None or not isinstance(workload, Training) or samples == 1:
        return {}
    found = count()
    if found is None:
        return {}
    asked = samples * macs_of_step(workload.network)
    return {"multiplications": {"counted": int(found), "asked": asked}}
