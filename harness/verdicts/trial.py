"""Judge one trial: compute its rate, percentiles and verdict from its ranks' windows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from harness.stats.windows import steady
from harness.stats.windows.shape import Steady
from harness.store.events.rank_streams import Stream
from harness.store.records import RunRecord, TrialRecord
from harness.verdicts import (
    checkpoints,
    disturbances,
    epochs,
    hardware_use,
    thresholds,
)
from harness.verdicts.credibility import learning
from harness.verdicts.credibility.findings import judge_credibility
from harness.verdicts.io_results import InputResult
from harness.verdicts.results import TrialResult
from harness.verdicts.timing import starts, turns
from harness.verdicts.timing.step_percentiles import percentiles

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def judge_trial(
    record: TrialRecord,
    streams: Sequence[Stream],
    unit: str,
    *,
    begin: Steady | None = None,
    tolerated: Sequence[str] = (),
    run: RunRecord | None = None,
) -> TrialResult:
    """Compute a trial's result from the windows of its ranks.

    A trial has figures only if it ended well, every rank recorded windows, and every epoch that was
    read delivered each sample once; of the others only how they ended is known. Its rate is taken
    over the steady windows, or over whole epochs where reading is all that it does; they begin with
    ``begin``, if given, else where its own windows say. Every finding is kept as evidence, and the
    gravest one gives the verdict.
    """
    import numpy as np

    fields, marks = _fields(record, streams), record.outcome.marks
    by_turns = turns.took_turns(streams)
    fields["turns"] = taken = turns.taken(record.outcome.turns, streams, unit)
    unshared = turns.judge_turns(taken, streams)
    if record.outcome.is_ok and unshared and not has_windows(record, streams):
        evidence = tuple(one.evidence for one in unshared)
        unknown = {**_UNKNOWN, "verdict": thresholds.worst(unshared, tolerated)}
        return TrialResult(**fields, **unknown, evidence=(*evidence, *marks))
    if not has_windows(record, streams):
        if record.outcome.is_ok:
            marks = (*marks, "it ended well, but not every rank recorded windows")
        return TrialResult(**fields, **_UNKNOWN, evidence=marks)
    fed = _input(streams)
    if fed is not None and fed.faults:
        return TrialResult(**fields, **_UNKNOWN, evidence=(*fed.faults, *marks), input=fed)
    if fed is not None:
        fields["facts"] |= {"cache": fed.cache, "cold_fraction": fed.cold_fraction}
    times = step_times(streams)
    ordered = np.sort(times)
    if by_turns:
        begin = Steady(0, "each turn's first steps settle, and are left out", True)
        shape = turns.within_turns(steady.describe(turns.within(streams, times)), streams)
    else:
        begin = _begin(times, begin, fed, ordered)
        shape = steady.describe(times[begin.start :], None if begin.start else ordered)
    nodes = hardware_use.nodes_of(record, streams, begin.start)
    seen = disturbances.hardware_evidence(nodes, streams, begin.start)
    rate = _rate(streams, begin.start, unit) if fed is None or fed.rate is None else fed.rate
    findings = thresholds.gravest_first(
        (
            *thresholds.judge(begin, shape),
            *thresholds.judge_ranks(_step_by_rank(record, streams, begin.start)),
            *_routes(run, record, streams),
            *unshared,
            *(one for evidence in seen for one in thresholds.judge_hardware(evidence)),
            *judge_credibility(run, record, streams, rate),
        ),
        tolerated,
    )
    return TrialResult(
        **fields,
        verdict=thresholds.worst(findings, tolerated),
        evidence=(
            *(finding.evidence for finding in findings),
            *_of_clocks(record, streams),
            *marks,
        ),
        rate=rate,
        **vars(percentiles(streams, times, begin.start, None if by_turns else shape)),
        steady_from=begin.start,
        steady_why=begin.why,
        windows=len(times),
        utilisation=hardware_use.headline(nodes),
        readings=hardware_use.readings(nodes),
        input=fed,
        checkpoints=checkpoints.judge_checkpoints(streams[0], begin.start),
        stall_at=next((one.stall_at for one in seen if thresholds.stood_still(one)), None),
    )


def _fields(record: TrialRecord, streams: Sequence[Stream]) -> dict[str, Any]:
    """Give the fields of a result that are known of every trial, however it ended."""
    outcome = record.outcome
    return {
        "run": record.run,
        "cell_key": outcome.cell_key,
        "block": record.name.block,
        "attempt": record.name.attempt,
        "outcome": outcome.ended,
        "reason": outcome.reason,
        "origin": outcome.origin,
        "counted": False,
        "peak_rss_bytes": _total(rank.max_rss_bytes for rank in outcome.ranks),
        "peak_device_bytes": _total(stream.facts.get("peak_device_bytes") for stream in streams),
        "proof": outcome.proof,
        "starts": starts.starts(record, streams),
        "first_step_s": starts.first_step_s(streams),
        "started_wall_ns": outcome.started_wall_ns,
        "directory": str(record.directory),
        "facts": _facts(streams),
        "last_loss": learning.last_loss(streams),
        "damaged": tuple(text for stream in streams for text in stream.damaged),
        "nodes": tuple(dict.fromkeys(record.hosts.values())),
    }


_UNKNOWN: Mapping[str, Any] = {
    "verdict": None,
    "rate": None,
    "p50_s": None,
    "p95_s": None,
    "p99_s": None,
    "steps_per_window": None,
    "steady_from": None,
    "steady_why": "",
    "windows": 0,
}


def has_windows(record: TrialRecord, streams: Sequence[Stream]) -> bool:
    """Tell whether a trial ended well and every one of its ranks recorded windows."""
    is_complete = len(streams) == len(record.outcome.ranks) and all(
        len(stream.steps) for stream in streams
    )
    return record.outcome.is_ok and bool(streams) and is_complete


def _input(streams: Sequence[Stream]) -> InputResult | None:
    """Judge the input of a trial; None unless every rank waited for input."""
    inputs = [stream.input for stream in streams if stream.input is not None]
    return epochs.judge_epochs(inputs) if len(inputs) == len(streams) else None


def _of_clocks(record: TrialRecord, streams: Sequence[Stream]) -> tuple[str, ...]:
    """Report windows that begin before all ranks ended the last: the nodes' clocks are wrong."""
    hosts = record.hosts
    early_s = record.clocks.contradicted_s(
        {
            one.rank: (hosts[one.rank], one.start_ns, one.start_ns + one.elapsed_ns)
            for one in streams
        }
    )
    if early_s is None:
        return ()
    seems = f"a window seems to begin {early_s * 1e3:.3g} ms before all ranks had ended the last"
    return (f"the nodes' clocks are wrong by more than their bound: {seems}",)


def _begin(
    times: NDArray[np.float64],
    chosen: Steady | None,
    fed: InputResult | None,
    ordered: NDArray[np.float64],
) -> Steady:
    """Find the first steady window; an epoch that is read whole has no beginning to leave out."""
    if chosen is not None:
        return replace(chosen, start=min(chosen.start, len(times) - 1))
    if fed is None or fed.rate is None:
        return steady.begin(times, ordered)
    return Steady(0, settled=True, why="whole epochs are measured, their starts included")


def step_times(streams: Sequence[Stream]) -> NDArray[np.float64]:
    """Give the time of one step in each measured window; of many ranks, the slowest's."""
    import numpy as np

    count = min(len(stream.steps) for stream in streams)
    each = [stream.elapsed_ns[:count] / (stream.steps[:count] * 1e9) for stream in streams]
    slowest = each[0] if len(each) == 1 else np.max(each, axis=0)
    # a window shorter than the clock's grain would have no logarithm
    times: NDArray[np.float64] = np.maximum(slowest, 1e-9)
    return times


def _step_by_rank(record: TrialRecord, streams: Sequence[Stream], start: int) -> dict[str, float]:
    """Give the median time of each rank's own steady steps."""
    import numpy as np

    hosts = record.hosts
    return {
        f"rank {one.rank} on {hosts.get(one.rank)}": float(
            np.median(one.elapsed_ns[start:] / (one.steps[start:] * 1e9))
        )
        for one in streams
        if len(streams) > 1 and len(one.steps) > start
    }


def _rate(streams: Sequence[Stream], start: int, unit: str) -> float | None:
    """Add up what the ranks did per second of their steady windows; unknown if one did nothing."""
    total = 0.0
    for stream in streams:
        work = stream.units.get(unit)
        elapsed = int(stream.elapsed_ns[start:].sum()) + checkpoints.blocked_ns(stream, start)
        if work is None or work <= 0 or elapsed <= 0:
            return None
        total += work * int(stream.steps[start:].sum()) / (elapsed / 1e9)
    return total


def _total(values: Any) -> int | None:
    """Add up what the ranks used; unknown if one of them is."""
    known = list(values)
    return None if not known or None in known else int(sum(known))


def _routes(
    run: RunRecord | None, record: TrialRecord, streams: Sequence[Stream]
) -> tuple[thresholds.Finding, ...]:
    """Compare the networks that messages used with what the run's platform claims."""
    if run is None or len(streams) < 2:
        return ()
    from harness.verdicts import network_routes
    from harness.verdicts.route_claims import judge_routes

    claim = network_routes.claim(run.info.platform)
    if not claim.fabric and not claim.interface:
        return ()
    return judge_routes(claim, network_routes.routes(run.paths, record, streams))


def _facts(streams: Sequence[Stream]) -> dict[str, Any]:
    """Give the facts and versions that the first rank reported."""
    if not streams:
        return {}
    return {**streams[0].facts, "versions": streams[0].versions}
