"""An adapter whose step computes a fixed amount: ratios of speeds are known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

TURNS = 95_000
_WORK = {"plain": TURNS, "twin": TURNS, "slowed": TURNS * 100 // 95}


class Burner:
    """Adapter and activity in one."""

    def __init__(self, job: Any, place: Any) -> None:
        del place  # it is the same everywhere
        self.units = {"steps": 1.0}
        self._turns = _WORK[job.options["work"]]

    def versions(self) -> Mapping[str, str]:
        return {"burner": "1.0"}

    def activity(self, workload: Any, feed: Any, options: Mapping[str, Any]) -> Burner:
        return self

    def step(self) -> None:
        for _ in range(self._turns):
            pass

    def sync(self) -> None:
        pass

    def values(self) -> Mapping[str, float]:
        return {}

    def agree(self, value: float) -> float:
        return value

    def facts(self) -> Mapping[str, Any]:
        return {}

    def close(self) -> None:
        pass


open = Burner  # noqa: A001 - the contract's name
