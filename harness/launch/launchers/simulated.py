"""Play jobs on a machine that is only a profile: a model instead of hardware.

Settings, all quantities with their units: see ``harness/launch/cluster_model.py``. Nothing is
started and no node is reached. What is played is what ranks would have said, as
``harness/worker/events.py`` states it, with windows cut as the timed loop cuts them, on one clock
for all nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

from harness.errors import UsageError
from harness.launch import cluster_model
from harness.launch.cluster_model import Cluster, SimulatedStep
from harness.launch.contract import Launch, Worker
from harness.platform.platform import Platform
from harness.worker.job import Job, Span
from harness.worker.loop import WARMUP_STEPS, steps_per_window

SETTINGS = tuple(cluster_model.SETTINGS)
setting_fault = cluster_model.setting_fault
_NO = "{}: nothing can be started on a simulated platform; its runs play a model."
_WINDOW = '{{"event":"window","phase":"{}","first":{},"steps":{},"start":{},"end":{}}}'


@dataclass(frozen=True)
class SimulatedFault:
    """What ended a trial before its time."""

    kind: str
    """node, or link."""
    node: int
    """Which of the trial's nodes died, or whose link to the next one was cut."""
    after_s: float


@dataclass(frozen=True)
class SimulatedRanks:
    """A trial as the model has it."""

    said: tuple[str, ...]
    """Lines after the anchor; one text that all ranks share, or one of each rank."""
    seconds: float
    fault: SimulatedFault | None
    compute_s: float
    """Of one rank."""


def nodes(settings: Mapping[str, Any], environ: Mapping[str, str]) -> tuple[str, ...]:
    """Refuse: there are no nodes."""
    del settings, environ  # nothing there could change it
    raise UsageError(_NO.format("launcher simulated"))


def reach(node: str, argv: Sequence[str], settings: Mapping[str, Any]) -> tuple[str, ...]:
    """Refuse: there is nowhere to go."""
    del node, argv, settings  # as above
    raise UsageError(_NO.format("launcher simulated"))


def launch(job_path: str, job: Job, platform: Platform, worker: Worker) -> Launch:
    """Refuse: there is nothing to start."""
    del job_path, job, worker  # as above
    raise UsageError(_NO.format(platform.name))


def play(
    job: Job,
    cluster: Cluster,
    told: SimulatedStep,
    where: Sequence[int],
    *,
    start_ns: int,
    start_up_s: float,
    timeout_s: float,
    seed: int,
) -> SimulatedRanks:
    """Play one trial of a cell whose step was modelled, on these nodes of the cluster."""
    import numpy as np

    chance = np.random.Generator(np.random.Philox(seed))
    each = job.scale.ranks_per_node
    slow = {node: cluster.is_slow(node) for node in where}
    drift = float(np.exp(cluster.spread * chance.standard_normal()))
    fault = _fault(cluster, chance, len(where))
    counts = _windows(job, told.seconds * drift)
    steps = [count for _, count in counts]
    if told.together:
        groups = {flag: each * sum(slow[n] is flag for n in where) for flag in (False, True)}
        windows = [cluster_model.windows(told, cluster, chance, groups, steps) * drift]
    else:
        windows = [
            cluster_model.windows(told, cluster, chance, {slow[node]: 1}, steps) * drift
            for node in where
            for _ in range(each)
        ]
    begin = start_ns + round(start_up_s * 1e9)
    ends = [begin + np.round(np.cumsum(one) * 1e9).astype(np.int64) for one in windows]
    took_s = (max(int(one[-1]) for one in ends) - start_ns) / 1e9
    if fault is None or fault.after_s > took_s:
        fault = SimulatedFault("time", 0, timeout_s) if took_s > timeout_s else None
    last = None if fault is None else start_ns + round(fault.after_s * 1e9)
    opening = [
        f'{{"event":"phase","name":"open","t":{start_ns}}}',
        f'{{"event":"versions","versions":{{"simulated":"a model of {cluster.platform.name}"}}}}',
        f'{{"event":"phase","name":"build","t":{begin}}}',
        f'{{"event":"units","units":{_object(told.units)}}}',
    ]
    said = tuple(
        "\n".join([*opening, *_lines(counts, begin, one.tolist(), last)]) + "\n" for one in ends
    )
    stuck_s = timeout_s if fault is not None and fault.kind == "link" else 0.0
    over_s = took_s if fault is None else max(fault.after_s, stuck_s)
    computed_s = told.compute_s * sum(steps) * min(1.0, over_s / took_s)
    return SimulatedRanks(said, over_s, fault, computed_s)


def _windows(job: Job, step_s: float) -> list[tuple[str, int]]:
    """Cut windows as the timed loop does, for steps that all take as long as is expected."""
    found = [("warm-up", 1)]
    done, spent_s, steps = 1, 0.0, 1
    while done < WARMUP_STEPS or not _is_over(job.warmup, done, spent_s):
        count = _rest(steps, job.warmup, done)
        found.append(("warm-up", count))
        done, spent_s = done + count, spent_s + count * step_s
        steps = min(2 * steps, steps_per_window(step_s, job.until))
    steps = job.window_steps or steps_per_window(step_s, job.until)
    if job.until.steps is not None:
        whole, rest = divmod(job.until.steps, steps)
        return found + [("measure", steps)] * whole + [("measure", rest)] * (rest > 0)
    assert job.until.seconds is not None
    return found + [("measure", steps)] * max(1, ceil(job.until.seconds / (steps * step_s)))


def _is_over(span: Span, done: int, spent_s: float) -> bool:
    return done >= (span.steps or 0) if span.seconds is None else spent_s >= span.seconds


def _rest(steps: int, span: Span, done: int) -> int:
    return steps if span.steps is None else max(1, min(steps, span.steps - done))


def _lines(
    counts: Sequence[tuple[str, int]], begin: int, ends: Sequence[int], last: int | None
) -> Iterator[str]:
    """Say the windows, up to the moment that ended everything."""
    phase, first, start = "", 0, begin
    for (name, steps), end in zip(counts, ends, strict=True):
        if last is not None and end > last:
            return
        if name != phase:
            phase = name
            yield f'{{"event":"phase","name":"{name}","t":{start}}}'
        yield _WINDOW.format(name, first, steps, start, end)
        first, start = first + steps, end
    yield '{"event":"facts","facts":{}}'
    yield f'{{"event":"phase","name":"close","t":{start}}}'
    yield f'{{"event":"finished","t":{start}}}'


def _object(numbers: Mapping[str, float]) -> str:
    return "{" + ",".join(f'"{name}":{value!r}' for name, value in numbers.items()) + "}"


def _fault(cluster: Cluster, chance: Any, count: int) -> SimulatedFault | None:
    """Draw what fails first, if anything may."""
    found = []
    for kind, mtbf_s in (("node", cluster.node_mtbf), ("link", cluster.link_mtbf)):
        after_s, node = chance.exponential(), int(chance.integers(count))
        if mtbf_s is not None and (kind == "node" or count > 1):
            found.append(SimulatedFault(kind, node, after_s * mtbf_s / count))
    return min(found, key=lambda one: one.after_s, default=None)
