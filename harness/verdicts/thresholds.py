"""Judge whether a trial's number may be believed, by the thresholds kept here.

A trial has one verdict, the worst found, with all its evidence. ``noisy``, ``straggler`` and
``unsteady`` come from the windows alone and mark a trial; ``stalled``, ``throttled`` and
``contended`` come from what the collector saw of the hardware meanwhile, and reject it;
so does ``misrouted``, from the way that messages really took (``routes.py``). ``untrained`` and
``impossible`` say that the number is of no training (``credibility/``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from harness.stats.estimate import median
from harness.stats.windows.shape import FEWEST_WINDOWS, Shape, Steady

SEVERITY = (
    *("valid", "noisy", "straggler", "unsteady"),
    *("stalled", "throttled", "contended", "misrouted", "untrained", "impossible"),
)
"""From harmless to worst: the order that decides between several findings."""
TOLERABLE = frozenset({"stalled", "throttled", "contended"})
"""What a study may count all the same, on a machine that is never left alone."""
REJECTING = TOLERABLE | {"misrouted", "untrained", "impossible"}
"""Verdicts whose trials are shown but not counted; those from the windows only mark."""
LASTING = frozenset({"untrained", "impossible"})
"""What a cell's code does, and would do again in a further trial."""


@dataclass(frozen=True)
class Threshold:
    """One limit: which verdict it gives, and what it means."""

    verdict: str
    name: str
    value: float
    meaning: str


THRESHOLDS = {
    limit.name: limit
    for limit in (
        Threshold("noisy", "spread", 0.10, "robust deviation of a window's time over the median"),
        Threshold("noisy", "hiccups", 0.05, "share of the time lost in windows over 1.5 medians"),
        Threshold("noisy", "rounds", 0.05, "standard error of a block's ratio, from its rounds"),
        Threshold("noisy", "windows", FEWEST_WINDOWS, "fewer windows cannot be judged"),
        Threshold("straggler", "behind", 0.10, "a rank's step time over the median of the others"),
        Threshold("unsteady", "drift", 0.03, "change from the first to the last steady window"),
        Threshold("unsteady", "wander", 0.015, "spread of the means of eighths of the trial"),
        Threshold("unsteady", "rhythm", 0.02, "swing of a regular rhythm in the times"),
        Threshold("unsteady", "modes", 0.03, "distance of two clusters of window times"),
        Threshold("contended", "foreign", 0.1, "cores of the ranks that others kept busy"),
        Threshold("contended", "foreign share", 0.005, "the same over all cores of the ranks"),
        Threshold("contended", "steal", 0.02, "share of the cores' time that the host took away"),
        Threshold(
            "contended", "counting", 0.2, "seconds of each core that spans under a second may hide"
        ),
        Threshold(
            "contended", "memory pressure", 0.02, "share of time all tasks waited for memory"
        ),
        Threshold("contended", "contexts", 1, "processes of others on the ranks' GPUs"),
        Threshold("throttled", "quota", 0.02, "share of a control group's periods held back"),
        Threshold("throttled", "heat", 1, "times that a core of the ranks was slowed for heat"),
        Threshold("throttled", "slowed", 0.02, "share of readings with a GPU's clocks held down"),
        Threshold("throttled", "clock fall", 0.1, "fall of a GPU's clock within the trial"),
        Threshold("stalled", "stall", 1.0, "seconds that a window must take to be a stall"),
        Threshold(
            "misrouted", "sockets", 1, "MB of a rank that TCP carried on a network not claimed"
        ),
        Threshold("stalled", "stall windows", 10, "and how many median windows that must be"),
        Threshold("untrained", "first steps", 50, "steps in which the loss must move"),
        Threshold("untrained", "learning rate", 1e-5, "rates below may leave a loss as it is"),
        Threshold("untrained", "amount", 0.03, "multiplications more or less than training takes"),
        Threshold("impossible", "room", 4, "times the most operations that processors can do"),
    )
}
CLEAR_DRIFT = 4.0
"""A drift also has to be this many standard errors from none."""
NEIGHBOURLY = 0.3
"""A wander also needs neighbouring windows to be alike."""


@dataclass(frozen=True)
class Finding:
    """One reason for a verdict."""

    verdict: str
    evidence: str


def judge(steady: Steady, shape: Shape) -> tuple[Finding, ...]:
    """Find the faults that show in the times of the windows, the worst first."""
    found = []
    if shape.windows < _limit("windows"):
        windows = "1 steady window" if shape.windows == 1 else f"{shape.windows} steady windows"
        found.append(Finding("noisy", f"only {windows}: too few to judge"))
    if shape.spread > _limit("spread"):
        found.append(
            Finding("noisy", f"window times spread by {shape.spread * 100:.0f} % of the median")
        )
    if shape.hiccups > _limit("hiccups"):
        found.append(
            Finding("noisy", f"{shape.hiccups * 100:.0f} % of the time went into slow windows")
        )
    if not steady.settled:
        found.append(Finding("unsteady", steady.why))
    if abs(shape.drift) > _limit("drift") and shape.drift_clear > CLEAR_DRIFT:
        way = "slower" if shape.drift > 0 else "faster"
        found.append(
            Finding("unsteady", f"steps became {abs(shape.drift) * 100:.0f} % {way} in the trial")
        )
    if shape.wander > _limit("wander") and shape.autocorrelation > NEIGHBOURLY:
        found.append(
            Finding("unsteady", f"speed wandered by {shape.wander * 100:.1f} % within the trial")
        )
    if shape.period is not None and shape.rhythm > _limit("rhythm"):
        cycle = f"every {shape.period:.3g} windows"
        found.append(
            Finding("unsteady", f"speed rose and fell by {shape.rhythm * 100:.0f} % {cycle}")
        )
    if shape.modes > _limit("modes"):
        found.append(Finding("unsteady", f"two speeds, {shape.modes * 100:.0f} % apart"))
    return tuple(sorted(found, key=lambda one: -SEVERITY.index(one.verdict)))


def judge_ranks(step_s: Mapping[str, float]) -> tuple[Finding, ...]:
    """Name the rank that is behind the others, if one is; by rank, the median time of its steps.

    Ranks that wait for each other in every step all take as long as the slowest: who is behind
    shows where they do not exchange anything.
    """
    if len(step_s) < 2:
        return ()
    slowest = max(step_s, key=lambda rank: step_s[rank])
    others = median([seconds for rank, seconds in step_s.items() if rank != slowest])
    behind = step_s[slowest] / others - 1 if others else 0.0
    if behind <= _limit("behind"):
        return ()
    which = "the other rank" if len(step_s) == 2 else "the other ranks' median"
    evidence = f"{slowest} took {behind * 100:.0f} % longer for a step than {which}"
    return (Finding("straggler", evidence),)


@dataclass(frozen=True)
class HardwareEvidence:
    """What the collector saw of one node in a trial's steady windows; None is unknown."""

    node: str
    seconds: float
    cores: int
    """That the ranks may use."""
    foreign_cores: float | None = None
    neighbours: tuple[tuple[str, float], ...] = ()
    """Who else used the node's cores, and how many: process number and name, the busiest first."""
    steal: float | None = None
    pressure: float | None = None
    """Share of time in which some task waited for a core; the ranks' own threads may be it."""
    memory_pressure: float | None = None
    preempted_per_s: float | None = None
    foreign_contexts: int | None = None
    quota: tuple[float, float] | None = None
    """Share of periods held back, and the quota in cores, of the group held back most."""
    heat: tuple[tuple[str, int], ...] = ()
    """Core and how often it was slowed."""
    slowed: Mapping[str, float] = field(default_factory=dict)
    """GPU and reason -> share of readings."""
    falls: tuple[tuple[str, float, float], ...] = ()
    """GPU, its clock in the first third and in the last."""
    stall_s: float | None = None
    """The longest window."""
    stall_at: int | None = None
    """Which of the measured windows that is."""
    window_s: float | None = None
    """The median one."""
    stalled_cores: Mapping[int, float] = field(default_factory=dict)
    """Rank -> cores that it used in the longest window."""
    stalled_gpus: Mapping[str, float] = field(default_factory=dict)
    """GPU -> share of that window in which it called itself busy."""


def judge_hardware(seen: HardwareEvidence) -> tuple[Finding, ...]:
    """Find the faults that show in the hardware's readings."""
    return (*_contended(seen), *_throttled(seen), *_stalled(seen))


def _contended(seen: HardwareEvidence) -> Iterator[Finding]:
    # a share of each core that readings 0.1 s apart cannot tell, at both ends of a short span
    unseen = _limit("counting") / seen.seconds if seen.seconds < 1.0 else 0.0
    foreign = seen.foreign_cores or 0.0
    share = max(_limit("foreign share"), unseen)
    if foreign > max(_limit("foreign"), share * seen.cores):
        these = "core" if seen.cores == 1 else f"{seen.cores} cores"
        text = f"other processes used {foreign:.2f} of the {these} on {seen.node}"
        if seen.neighbours:
            busiest = [f"{name} {cores:.2f}" for name, cores in seen.neighbours]
            text += f" (busiest on the node: {', '.join(busiest)})"
        if seen.pressure is not None:
            text += f"; some task waited for a core {seen.pressure * 100:.0f} % of the time"
        if seen.preempted_per_s:
            text += f"; the ranks were preempted {seen.preempted_per_s:.0f} times a second"
        yield Finding("contended", text)
    if (steal := seen.steal or 0.0) > max(_limit("steal"), unseen):
        text = f"the host took {steal * 100:.1f} % of the cores' time away on {seen.node}"
        yield Finding("contended", text)
    if (waited := seen.memory_pressure or 0.0) > _limit("memory pressure"):
        text = f"everything on {seen.node} waited for memory {waited * 100:.0f} % of the time"
        yield Finding("contended", text)
    if (seen.foreign_contexts or 0) >= _limit("contexts"):
        text = f"{seen.foreign_contexts} processes of others were on the GPUs of {seen.node}"
        yield Finding("contended", text)


def _throttled(seen: HardwareEvidence) -> Iterator[Finding]:
    if seen.quota is not None and seen.quota[0] > _limit("quota"):
        share, cores = seen.quota
        text = (
            f"a quota of {cores:g} cores held the ranks back in {share * 100:.0f} % of its periods"
        )
        yield Finding("throttled", text)
    for core, times in seen.heat:
        if times >= _limit("heat"):
            yield Finding("throttled", f"{core} on {seen.node} was slowed for heat {times} times")
    for reason, share in seen.slowed.items():
        if share > _limit("slowed"):
            # A card at full load is held at its power limit: usual, worth knowing, no reject.
            verdict = "valid" if reason.endswith("power cap") else "throttled"
            yield Finding(
                verdict, f"{reason} held clocks down in {share * 100:.0f} % of the readings"
            )
    for device, first, last in seen.falls:
        if 1 - last / first > _limit("clock fall"):
            text = f"{device}: its clock fell from {first / 1e6:.0f} to {last / 1e6:.0f} MHz"
            yield Finding("throttled", text)


def _stalled(seen: HardwareEvidence) -> Iterator[Finding]:
    if not stood_still(seen):
        return
    text = f"no step ended for {seen.stall_s:.1f} s (usual: {seen.window_s:.3g} s)"
    meanwhile = [
        f"{gpu} called itself {busy * 100:.0f} % busy" for gpu, busy in seen.stalled_gpus.items()
    ]
    meanwhile += [f"rank {rank} used {used:.2f} cores" for rank, used in seen.stalled_cores.items()]
    yield Finding("stalled", f"{text} while {', '.join(meanwhile)}" if meanwhile else text)


def stood_still(seen: HardwareEvidence) -> bool:
    """Whether the longest window was far too long."""
    if seen.stall_s is None or seen.window_s is None:
        return False
    return seen.stall_s >= max(_limit("stall"), _limit("stall windows") * seen.window_s)


def gravest_first(findings: Sequence[Finding], tolerated: Sequence[str] = ()) -> list[Finding]:
    """Put what a verdict stands on before what merely adds to it.

    What rejects a trial comes before what its study tolerates, however grave: a tolerated neighbour
    must not hide a quota.
    """
    rejects = rejecting(tolerated)
    return sorted(
        findings, key=lambda one: (one.verdict not in rejects, -SEVERITY.index(one.verdict))
    )


def worst(findings: Sequence[Finding], tolerated: Sequence[str] = ()) -> str:
    """Give the one verdict of a trial."""
    return next((one.verdict for one in gravest_first(findings, tolerated)), "valid")


def rejecting(tolerated: Sequence[str]) -> frozenset[str]:
    """Give the verdicts that reject a trial in a study that tolerates some."""
    return REJECTING.difference(tolerated)


def repeated(tolerated: Sequence[str]) -> frozenset[str]:
    """Give the verdicts for which a trial is run again: of the others the same would come."""
    return rejecting(tolerated) - LASTING


def _limit(name: str) -> float:
    return THRESHOLDS[name].value
