"""The protocol of a study: how often, how long and within which limits cells run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer
from pydantic.json_schema import WithJsonSchema

from harness import units
from harness.stats.repetition.repeat import schedule
from harness.toml.tables import Bytes, Listed, Seconds, Share, Table
from harness.toml.values import shown
from harness.worker.job import Span

_MOST_PER_TRIAL = 5
_FEWEST_UNTIL_ANSWERED, _MOST_UNTIL_ANSWERED = 4, 30
_TRIALS_WITHOUT_TURNS = 7
_MOST_TRIALS = 10_000
_MOST_SEED = 2**31 - 1
_LONGEST_S = 14 * 24 * 3600.0  # poll(2) counts milliseconds in 31 bits: 24 days
_LEAST_MEMORY = 32 * 2**20
"""A worker that does nothing needs about half of this before its first event."""

TRIALS, UNTIL = "trials", "until"

Checked = TypeVar("Checked")


def _must(holds: Callable[[Checked], bool], words: str) -> AfterValidator:
    """Refuse a value of the right kind that no trial could be carried out with."""

    def check(value: Checked) -> Checked:
        if not holds(value):
            raise ValueError(words)
        return value

    return AfterValidator(check)


def _at_most(limit: int) -> AfterValidator:
    def holds(value: int) -> bool:
        return value <= limit

    return _must(holds, f"must be at most {limit}")


def _span(value: Any) -> Span:
    """Read "20 steps" or "60 s"."""
    if isinstance(value, Span):
        return value
    number, _, unit = value.strip().rpartition(" ") if isinstance(value, str) else ("", "", "")
    if unit in ("step", "steps") and number.isdigit():
        if int(number) >= 2**31:
            raise ValueError(f"{shown(value)} is more steps than any trial can do")
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


def _is_some(span: Span) -> bool:
    return bool(span.steps or span.seconds)


class MeasureTable(Table):
    """How cells are measured."""

    trials: Annotated[int, Field(ge=1), _at_most(_MOST_TRIALS)] = 6
    """Fresh executions of each cell; six is the fewest that give a 95 % interval, and without turns
    seven are the default."""
    warmup: Length = Span(steps=20)
    """Steps or time at the start of a trial that count for nothing."""
    until: Annotated[Length, _must(_is_some, "must be more than nothing")] = Span(seconds=60.0)
    """Steps or time that a trial measures."""
    until_interval: Share | None = None
    """Go on with further blocks until every cell's interval is this narrow."""
    stop: Literal["answered"] | None = None
    """Go on with further blocks until every comparison is answered: faster, slower or same."""
    trials_at_most: Annotated[int, Field(ge=1), _at_most(_MOST_TRIALS)] | None = None
    """Where `until_interval` or `stop` ends at the latest; by default 5 times `trials`, or 30."""
    budget: Seconds | None = None
    """Chooses how many trials there are, and how long; with `until_interval` or `stop`, beyond the
    first `trials` no block is started that would end after so much measuring."""
    timeout: Annotated[
        Seconds, _must(lambda s: 0 < s <= _LONGEST_S, "must be more than 0 s and at most 336 h")
    ] = 900.0
    """A trial that takes longer is ended."""
    memory: (
        Annotated[
            Bytes,
            _must(
                lambda size: _LEAST_MEMORY <= size < 2**63,
                "must be at least 32 MiB: a worker that does nothing needs half of that",
            ),
        ]
        | None
    ) = None
    """The most memory that the ranks of a trial may use on a node."""
    reference: dict[str, Any] | None = None
    """The cell that others are compared with: factors that select one per workload."""
    seed: Annotated[int, Field(ge=0), _at_most(_MOST_SEED)] = 1
    """Decides the order of trials, and data and weights."""
    reruns: Annotated[int, Field(ge=0), _at_most(_MOST_TRIALS)] = 2
    """How often one trial of a cell may be run again after a verdict that rejects it."""
    tolerate: Listed[Literal["contended", "throttled", "stalled"]] = ()
    """Verdicts that mark a trial here instead of rejecting it: for machines never left alone."""
    turns: bool = True
    """Let the trials of a block live at the same time and take turns, where they can."""
    turn: Annotated[Seconds, _must(lambda s: s > 0, "must be more than 0 s")] = 1.0
    """How long a turn lasts: a few steps at least."""
    explain: bool = True
    """Probe cells before their trials, and divide their steps and find ceilings after them."""


def longer_than_timeout(table: MeasureTable) -> str | None:
    """Say why every trial would be ended before it is done; None where that is not certain."""
    spans_s = (table.warmup.seconds or 0.0) + (table.until.seconds or 0.0)
    if spans_s < table.timeout:
        return None
    return (
        f"ends every trial after {units.duration(table.timeout)}, before its warm-up and "
        f"measuring are over, {units.duration(spans_s)}; raise timeout or shorten until"
    )


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
    turns: bool = False
    turn_s: float = 1.0
    explain: bool = True
    stop: str | None = None
    added: tuple[int, ...] = ()
    """The numbers of blocks after which somebody who had seen the answers asked for more."""
    chosen: tuple[str, ...] = ()
    """What the budget chooses of `trials` and `until`."""

    @property
    def is_repeated(self) -> bool:
        """Whether further blocks follow until something is known."""
        return self.until_interval is not None or self.stop is not None

    @property
    def looks(self) -> tuple[int, ...]:
        """After how many blocks it is decided whether to go on; the last number is the most."""
        if self.stop is not None:
            most = self.trials_at_most or max(self.trials, _MOST_UNTIL_ANSWERED)
            return tuple(range(self.trials, most + 1))
        if self.until_interval is None:
            return (self.trials,)
        most = self.trials_at_most or _MOST_PER_TRIAL * self.trials
        return schedule(self.trials, max(self.trials, most)).looks


def resolved(table: MeasureTable) -> Measure:
    """Name the protocol's quantities by their units."""
    return Measure(
        trials=_trials(table),
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
        turns=table.turns,
        turn_s=table.turn,
        explain=table.explain,
        stop=table.stop,
        chosen=_chosen(table),
    )


def _chosen(table: MeasureTable) -> tuple[str, ...]:
    """Name what a budget is to choose: where blocks are repeated it only ends them."""
    if table.budget is None or table.until_interval is not None or table.stop is not None:
        return ()
    return tuple(name for name in (TRIALS, UNTIL) if name not in table.model_fields_set)


def _trials(table: MeasureTable) -> int:
    if "trials" in table.model_fields_set:
        return table.trials
    if table.stop is not None:
        return _FEWEST_UNTIL_ANSWERED
    return table.trials if table.turns else _TRIALS_WITHOUT_TURNS
