"""Say in a sentence what holds a cell back, with the figures that it stands on."""

from __future__ import annotations

from harness.analysis import numbers
from harness.analysis.explain.hardware import of_system
from harness.analysis.explain.step_shares import EXCHANGE, Key
from harness.analysis.limits.anatomy import HOST, WAITING
from harness.analysis.limits.floors import COMPUTING, MOVING, moved_per_s
from harness.analysis.limits.holding_back import (
    KERNELS,
    NO_PROCESSOR,
    NO_SINGLE,
    NOT_KNOWN,
    SINGLE,
    UNDIVIDED,
    Limit,
)
from harness.store.record_readers.ceilings import COMPUTE, MEMORY, Ceiling
from harness.units import counted
from harness.verdicts.thresholds import TOLERABLE

_LEAST = 0.05
"""Smaller shares are in the table; only of computing it is always said."""
_FEW = 0.01
"""Of computing: so little is not worth its own words."""
_NAMED = 2
"""Layers that are named of what operations take beyond their floors."""
CAUSES = {
    COMPUTING: "computing",
    MOVING: "memory",
    KERNELS: "operations beyond what is needed",
    UNDIVIDED: "operations, not divided",
    HOST: "nothing ran (host)",
    WAITING: "waiting for input",
    EXCHANGE: "exchange, or waiting for other ranks",
    NO_PROCESSOR: "no processor",
}
UNMARKED = "no cause known"
RATES = {COMPUTE: "GFLOP/s", MEMORY: "GB/s"}


def short(of: Limit) -> str:
    """Say it in a few words, for a line of a ranking: ``host-bound 43 %``."""
    if of.verdict == NOT_KNOWN:
        return NOT_KNOWN
    if of.verdict == NO_SINGLE or of.first is None:
        return f"{NO_SINGLE} > {numbers.share(SINGLE)}"
    return f"{of.verdict} {numbers.share(named_share(of))}"


def by_cause(of: Limit) -> tuple[tuple[str, float], ...]:
    """Give each cause in words with its share of the step, and last what of it is not known."""
    unmarked = max(0.0, 1 - sum(of.shares.values()))
    named = ((CAUSES.get(one, one), share) for one, share in of.shares.items())
    return tuple(one for one in (*named, (UNMARKED, unmarked)) if one[1] > 0)


def named_share(of: Limit) -> float:
    """Give the share of the cause that is named; of what is not known there is none."""
    return max((one for name, one in of.shares.items() if name != UNDIVIDED), default=0.0)


def sentence(of: Limit) -> str:
    """Say what holds a cell back: the verdict, then each larger cause with its figures."""
    verdict = of.verdict
    if verdict == NO_SINGLE:
        verdict = f"no single cause above {numbers.share(SINGLE)}"
    larger = [one for one, share in of.shares.items() if share >= _LEAST or one == COMPUTING]
    told = [_cause(of, name) for name in larger]
    unmarked = max(0.0, 1 - sum(of.shares.values()))
    if unmarked >= _LEAST:
        told.append(f"of {numbers.share(unmarked)} no cause is known")
    if of.busy_cores is not None:
        ranks = of.cell.scale.ranks
        who = "its ranks" if ranks == 1 else f"its {ranks} ranks together"
        cores = f"{who} used {numbers.number(of.busy_cores)} cores"
        told.append(", ".join((cores, *of_system(of.cell))))
    is_divided = {KERNELS, UNDIVIDED} & of.shares.keys()
    if is_divided and (disturbed := _disturbed(of)):
        told.append(disturbed)
    why = f". Not known: {'; '.join(of.why_unknown)}" if of.why_unknown else ""
    return f"{verdict}: {'; '.join(told)}{why}"


def _disturbed(of: Limit) -> str:
    """Say in how many trials others may have had a part in what operations took."""
    trials = [one for one in of.cell.trials if one.counted]
    disturbed = sum(one.verdict in TOLERABLE for one in trials)
    if not disturbed:
        return ""
    many = f"{disturbed} of its {counted(len(trials), 'trial')}"
    return f"something disturbed {many}, and what that took is part of what operations took"


def _cause(of: Limit, name: str) -> str:
    share = numbers.share(of.shares[name])
    least = "at least " if name == HOST and of.anatomy.undivided else ""
    told = f"{least}{share} ({numbers.seconds(of.shares[name] * of.anatomy.step_s)})"
    most = [f"{_place(key)} {numbers.share(one)}" for key, one in of.slow if one >= _LEAST]
    return {
        COMPUTING: f"{told} is what its multiplications need{_computed(of)}",
        MOVING: f"{told} is what its tensors need through memory{_moved(of.roof.memory)}",
        KERNELS: f"{told} is what operations take beyond what this machine needs{_most(most)}",
        UNDIVIDED: f"{told} is {'further ' if COMPUTING in of.shares else ''}operations",
        HOST: f"for {told} no operation ran (host gaps)",
        WAITING: f"for {told} it waited for input",
        EXCHANGE: f"for {told} it exchanged gradients, or waited for other ranks, and did "
        "nothing else",
        NO_PROCESSOR: f"for at least {told} its operations waited without a processor: others had "
        "it, a quota held them back, or they slept",
    }[name]


def _most(slow: list[str]) -> str:
    return f", most in {', '.join(slow[:_NAMED])}" if slow else ""


def _computed(of: Limit) -> str:
    """Say what computing is held to: its layers, each timed alone, or the highest rate."""
    if not of.alone:
        return _at(of.roof.compute)
    alone = ", by the quickest times of its layers, alone or in a step"
    if 1 - of.alone < _FEW:
        return alone
    rest = numbers.share(1 - of.alone)
    return f"{alone}; {rest} of that is of layers never timed alone,{_at(of.roof.compute)}"


def _moved(of: Ceiling | None) -> str:
    if of is None:
        return ""
    rate = numbers.number(moved_per_s(of) / 1e9)
    return f" at {rate} GB/s, the most moved here ({of.under.framework}'s triad)"


def _at(of: Ceiling | None) -> str:
    if of is None:
        return ""
    unit = RATES[of.reached.unit]
    kernel = f"{of.under.framework}'s {of.reached.kernel}"
    return f" at {numbers.number(of.reached.per_s / 1e9)} {unit}, the most seen here ({kernel})"


def _place(key: Key) -> str:
    site, phase = key
    return f"{site} {phase}" if site else phase
