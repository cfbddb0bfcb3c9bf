"""This file is the protocol of a study: how often, how long and within which limits cells run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PlainSerializer
from pydantic.json_schema import WithJsonSchema

from harness import units
from harness.node.job import Span
from harness.spec.factors import shown
from harness.spec.models import Bytes, Listed, Seconds, Share, Table
from harness.stats.repeat import schedule

_MOST_PER_TRIAL = 5


def _span(value: Any) -> Span:
    """Read "20 steps" or "60 s"."""
    if isinstance(value, Span):
        return value
    number, _, unit = value.strip().rpartition(" ") if isinstance(value, str) else ("", "", "")
    if unit in ("step", "steps") and number.isdigit():
        return Span(steps=int(number))
    if unit and not unit[:1].isdigit():
        return Span(seconds=units.seconds(str(value)))
    if isinstance(value, str) and not value.strip().isdigit():
        return Span(seconds=units.seconds(value))
    raise ValueError(f'{shown(value)} needs a unit, for example "60 s" or "500 steps"')


Length = Annotated[
    Any,
    BeforeValidator(_span),
    PlainSerializer(lambda span: {"steps": span.steps, "seconds": span.seconds}),
    WithJsonSchema(
        {
            "type": "string",
            "pattern": r"^\s*[0-9]+(\.[0-9]+)?\s*(ms|s|min|h|steps?)\s*$",
            "examples": ["60 s", "500 steps"],
        }
    ),
]


class MeasureTable(Table):
    """How cells are measured."""

    trials: Annotated[int, Field(ge=1)] = 6
    """Fresh executions of each cell; six is the fewest that give a 95 % interval."""
    warmup: Length = Span(steps=20)
    """Steps or time at the start of a trial that count for nothing."""
    until: Length = Span(seconds=60.0)
    """Steps or time that a trial measures."""
    until_interval: Share | None = None
    """Go on with further blocks until every cell's interval is this narrow."""
    trials_at_most: Annotated[int, Field(ge=1)] | None = None
    """Where `until_interval` stops at the latest; by default five times `trials`."""
    budget: Seconds | None = None
    """Beyond the first `trials`, no block is started that would end after so much measuring."""
    timeout: Seconds = 900.0
    """A trial that takes longer is ended."""
    memory: Bytes | None = None
    """The most memory that the ranks of a trial may use on a node."""
    reference: dict[str, Any] | None = None
    """The cell that others are compared with: factors that select one per workload."""
    seed: Annotated[int, Field(ge=0)] = 1
    """Decides the order of trials, and data and weights."""
    reruns: Annotated[int, Field(ge=0)] = 2
    """How often one trial of a cell may be run again after a verdict that rejects it."""
    tolerate: Listed[Literal["contended", "throttled", "stalled"]] = ()
    """Verdicts that mark a trial here instead of rejecting it: for machines never left alone."""


@dataclass(frozen=True)
class Measure:
    """The protocol, resolved."""

    trials: int
    warmup: Span
    until: Span
    until_interval: float | None
    timeout_s: float
    memory_bytes: int | None
    seed: int
    reruns: int
    tolerate: tuple[str, ...] = ()
    trials_at_most: int | None = None
    budget_s: float | None = None

    @property
    def looks(self) -> tuple[int, ...]:
        """After how many blocks it is decided whether to go on; the last number is the most."""
        if self.until_interval is None:
            return (self.trials,)
        most = self.trials_at_most or _MOST_PER_TRIAL * self.trials
        return schedule(self.trials, max(self.trials, most)).looks


def resolved(table: MeasureTable) -> Measure:
    """Name the protocol's quantities by their units."""
    return Measure(
        trials=table.trials,
        warmup=table.warmup,
        until=table.until,
        until_interval=table.until_interval,
        timeout_s=table.timeout,
        memory_bytes=table.memory,
        seed=table.seed,
        reruns=table.reruns,
        trials_at_most=table.trials_at_most,
        budget_s=table.budget,
        tolerate=tuple(table.tolerate),
    )
