"""The results of a cell and of a trial: estimates, comparisons, what ran.

Plain values only; ``harness/analysis/analyse.py`` computes them. Unknown is None and prints as a
dash.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from harness.store.records import DIFFERS, EXAMINATION_FAILED, NOT_EXAMINED, Gate
from harness.verdicts.io_results import CheckpointResult, InputResult
from harness.worker.network.workload import task, work_per_sample
from harness.worker.redaction.redact import NAMES_A_PLACE
from harness.worker.scale import Scale

_PLACE = {NAMES_A_PLACE: True}


@dataclass(frozen=True)
class Interval:
    """Where a quantity plausibly lies, and what the two ends are."""

    low: float
    high: float
    level: float
    """The confidence really achieved, for example 0.969 for six trials."""
    meaning: str
    """For example "smallest and largest of 6 trials"."""


def scaled(of: Interval, factor: float) -> Interval:
    """Give the interval of a quantity times a factor."""
    return replace(of, low=of.low * factor, high=of.high * factor)


def inverse(of: Interval) -> Interval:
    """Turn the interval of a/b into that of b/a."""
    return replace(of, low=1 / of.high, high=1 / of.low)


@dataclass(frozen=True)
class Estimate:
    """A number with its unit, how many trials stand behind it, and its interval if they suffice."""

    value: float
    unit: str
    n: int
    interval: Interval | None


@dataclass(frozen=True)
class Reading:
    """One quantity of one node, rank or device in a trial's steady windows."""

    node: str
    scope: str
    """node, core:0, rank:1, gpu:GPU-…, disk:vda, observer …"""
    name: str
    unit: str
    mean: float
    peak: float | None = None


@dataclass(frozen=True)
class Start:
    """How long one rank took to start."""

    host: str
    entered_s: float
    """From its process's start to its first word: its container, if it has one, its interpreter."""
    opened_s: float
    """From there until its framework was opened: imported, and joined to the other ranks."""


@dataclass(frozen=True)
class Round:
    """What a trial reached in its turn of one round."""

    number: int
    rate: float
    """Units of work per second over all ranks."""
    seconds: float


@dataclass(frozen=True)
class TurnsTaken:
    """How a trial took turns with others of its block."""

    alone: str = ""
    """Why it did not; then nothing else is known."""
    together: Mapping[str, str] = field(default_factory=dict)
    """Cell -> trial of all that lived at the same time, itself included."""
    reference: str | None = None
    """The cell that its group was made around."""
    planned: int = 0
    """Rounds."""
    disturbed: int = 0
    """Turns that were dropped, as others used its cores."""
    turn_s: float | None = None
    """What was measured in a turn, the median over rounds."""
    rounds: tuple[Round, ...] = ()
    """Those that count."""
    alternations: tuple[float, ...] = ()
    """Logarithms of the rate right after another trial's turn over that right after its own."""
    changes: tuple[float, ...] = ()
    """Logarithms of the rate in the first half of a turn over that in the second."""
    settled: bool = False
    """Whether each turn settled, uncounted, for as long as it takes to forget another's."""
    known: tuple[float, ...] = ()
    """Such of earlier runs on this machine."""


@dataclass(frozen=True)
class LastLoss:
    """The first rank's loss of training as its trial ended."""

    value: float
    """The mean of the last that it said, at most ten."""
    step: int
    """The last of them is of this step."""


@dataclass(frozen=True)
class TrialResult:
    """One trial's result."""

    run: str = field(metadata=_PLACE)
    cell_key: str = field(metadata=_PLACE)
    block: int
    attempt: int
    outcome: str
    reason: str
    origin: str
    verdict: str | None
    """None when the trial did not end well enough to be judged."""
    evidence: tuple[str, ...]
    counted: bool
    """Whether the estimates stand on it; shown with the reason where they do not."""
    rate: float | None
    p50_s: float | None
    p95_s: float | None
    p99_s: float | None
    steps_per_window: int | None
    """Percentiles are of single steps where this is 1, else of the means of so many steps."""
    steady_from: int | None
    """Index of the first steady window of the measured phase."""
    windows: int
    first_step_s: float | None
    peak_rss_bytes: int | None
    peak_device_bytes: int | None
    started_wall_ns: int | None
    directory: str = field(metadata=_PLACE)
    facts: Mapping[str, Any] = field(default_factory=dict)
    steady_why: str = ""
    """Why the steady state begins there, in words."""
    utilisation: Mapping[str, float] = field(default_factory=dict)
    """As a cell's."""
    readings: tuple[Reading, ...] = ()
    """By node, rank and device; empty where nothing was observed."""
    input: InputResult | None = None
    """None where it waited for no input."""
    checkpoints: CheckpointResult | None = None
    """None where none were taken."""
    nodes: tuple[str, ...] = ()
    """Where its ranks ran."""
    proof: str = ""
    """What the examination of what was timed found, or why there was none."""
    starts: tuple[Start, ...] = ()
    """How its ranks started; empty where one of them does not tell."""
    turns: TurnsTaken | None = None
    """None in a study whose trials all run alone."""
    last_loss: LastLoss | None = None
    """None where the first rank said no loss that is a number."""
    stall_at: int | None = None
    """The measured window in which it stood still; None where it never did."""
    damaged: tuple[str, ...] = ()
    """What is wrong with lines of its events, which are left out."""

    @property
    def is_examined(self) -> bool:
        """Whether what was timed was held to the reference after it had been timed."""
        return self.proof != "" and not self.proof.startswith(NOT_EXAMINED)


@dataclass(frozen=True)
class Comparison:
    """A cell against the reference of its task."""

    reference_key: str = field(metadata=_PLACE)
    ratio: float | None
    interval: Interval | None
    answer: str
    """reference, faster, slower, same, cannot tell; contended: a neighbour left too few blocks."""
    blocks: int
    more_blocks: int | None
    """How many more blocks would probably tell; None where that is unknown or not needed."""
    why: str


@dataclass(frozen=True)
class WhatRan:
    """What really ran in a cell, as its facts tell, beside what it asked for."""

    facts: Mapping[str, Any] = field(default_factory=dict)
    """Of the probe and of the trials; `harness/worker/contracts.py` names them."""
    probe: str = "not probed"
    """watched, not probed, or how the probe failed."""
    first_step_cold_s: float | None = None
    """From building to the end of the first step, from empty caches, compilation included."""
    compile_s: float | None = None
    contradictions: tuple[Contradiction, ...] = ()


@dataclass(frozen=True)
class CellResult:
    """One cell with everything known about it."""

    run: str = field(metadata=_PLACE)
    key: str = field(metadata=_PLACE)
    label: str
    workload: str
    framework: str
    strategy: str
    factors: Mapping[str, Any]
    scale: Scale
    platform: str
    unit: str
    rate: Estimate | None
    """Units of work per second over all ranks."""
    comparison: Comparison | None
    trials: tuple[TrialResult, ...]
    epoch_s: Estimate | None
    parameters: int | None
    macs: int | None
    gate: Gate
    utilisation: Mapping[str, float]
    """Steady-window means by channel: cpu, gpu, power_w, observer …; absent is unknown."""
    versions: Mapping[str, str] = field(default_factory=dict)
    readings: tuple[Reading, ...] = ()
    """Medians of the counted trials."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Those of its framework's adapter."""
    content: str | None = None
    """What the files hold that it reads; None if it reads none."""
    own_files: str | None = None
    """Where a user's own files lie, if it reads those."""
    against: str | None = field(default=None, metadata=_PLACE)
    """The cell of side A that it is held against, in a session of two sides."""
    ran: WhatRan = field(default_factory=lambda: WhatRan())
    left_out: str | None = None
    """The origin of trials of it that were left out, such as a stand-in's; None if none were."""

    @property
    def work_per_step(self) -> int:
        """How much a step of all ranks gets through, in the unit that its rate counts."""
        return self.scale.batch_per_step * work_per_sample(self.unit, self.factors)

    @property
    def task(self) -> str:
        """What it does in a step; only cells of one task are ranked and compared."""
        return task(self.workload, self.factors)

    @property
    def refusal(self) -> str:
        """Why it must not be ranked, compared or quoted; empty where it may be.

        The gate found that it computes something else, or could not come to an end; or what ran is
        no cell of its name.
        """
        if self.gate.state == DIFFERS:
            return f"it computes something else ({self.gate.detail or 'the gate gave no detail'})"
        if self.gate.state == EXAMINATION_FAILED:
            return f"the gate could not examine it ({self.gate.detail})"
        grave = [str(one) for one in self.ran.contradictions if one.is_grave]
        return f"it is not what it is called: {'; '.join(grave)}" if grave else ""

    @property
    def is_comparable(self) -> bool:
        """Whether it computes what the others of its task compute.

        Not what is refused, nor ranks that were told to keep their gradients.
        """
        return not self.refusal and self.factors.get("communicate") is not False


@dataclass(frozen=True)
class Contradiction:
    """Something that was asked for and did not happen."""

    asked: str
    ran: str
    evidence: str
    is_grave: bool = False
    """Whether the cell's name is then false: what was timed is another cell."""

    def __str__(self) -> str:
        return f"asked for {self.asked}, {self.ran} ({self.evidence})"
