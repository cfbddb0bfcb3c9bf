"""Which steps are traced, and how many: as fit into about a second, within bounds."""

from __future__ import annotations

import time
from typing import Any

WARM_STEPS = 3
TRACED_S = 1.0
FEWEST, MOST = 5, 40
NOT_ON_GPU = "steps on a GPU are not attributed yet: only operations on a CPU are"


def warmed(activity: Any) -> int:
    """Step until warm; give the number of steps to trace."""
    for _ in range(WARM_STEPS):
        activity.step()
    activity.sync()
    began = time.monotonic()
    activity.step()
    activity.sync()
    step_s = max(time.monotonic() - began, 1e-6)
    return max(FEWEST, min(MOST, round(TRACED_S / step_s)))
