"""Work whose steps alone let time pass, and the log of what the loop made of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Log:
    """Everything that happens, in order: the clock, the work, the events, the collector."""

    def __init__(self) -> None:
        self.now = 0
        self.happened: list[str] = []
        self.said: list[dict[str, Any]] = []

    def clock(self) -> int:
        self.happened.append("clock")
        return self.now

    def say(self, event: str, **fields: Any) -> None:
        self.happened.append("say")
        self.said.append({"event": event, **fields})

    def flush(self) -> None:
        self.happened.append("flush")

    def events(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in self.said if event["event"] == kind]

    def windows(self, phase: str) -> list[dict[str, Any]]:
        return [window for window in self.events("window") if window["phase"] == phase]


class Work:
    """Steps that take as long as told; the first one may take longer."""

    units: Mapping[str, float] = {"steps": 1}

    def __init__(self, log: Log, step_s: float, first_s: float | None = None) -> None:
        self.log = log
        self.seconds = step_s
        self.queued = [step_s if first_s is None else first_s]
        self.steps = 0

    def step(self) -> None:
        self.log.happened.append("step")
        if self.steps:
            self.queued.append(self.seconds)
        self.steps += 1

    def sync(self) -> None:
        self.log.happened.append("sync")
        self.log.now += round(sum(self.queued) * 1e9)
        self.queued.clear()

    def values(self) -> Mapping[str, float]:
        self.log.happened.append("values")
        return {"loss": 1.0 / self.steps}

    def agree(self, value: float) -> float:
        raise AssertionError("a single rank has nobody to agree with")
