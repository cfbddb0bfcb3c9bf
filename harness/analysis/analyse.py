"""Turn a Dataset into Results: estimates, comparisons, verdicts and plain warnings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from harness.analysis import beginnings, stopping
from harness.analysis.blocks import answered
from harness.analysis.blocks.compare_cells import compared
from harness.analysis.results import Results
from harness.analysis.warnings import criticise
from harness.stats import estimate
from harness.stats.answers import EQUIVALENCE
from harness.stats.windows.shape import Steady
from harness.store import gate_results
from harness.store.dataset import Dataset
from harness.store.events.rank_streams import Stream, read_streams
from harness.store.layout import PILOT
from harness.store.outcome import Ended
from harness.store.records import CellRecord, Gate, Repetition, RunRecord, TrialRecord
from harness.verdicts import recurring
from harness.verdicts.results import CellResult, Estimate, Interval, Reading, TrialResult
from harness.verdicts.thresholds import rejecting
from harness.verdicts.timing.step_percentiles import of_one_size
from harness.verdicts.trial import has_windows, judge_trial, step_times
from harness.verdicts.what_ran import what_ran
from harness.worker.network.workload import work_per_sample
from harness.worker.redaction.redact import redact_values

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def analyse(
    dataset: Dataset,
    *,
    steady_from: int | None = None,
    equivalence: float = EQUIVALENCE,
) -> Results:
    """Compute everything a report may say, without secrets; nothing is stored.

    ``steady_from`` overrides, for every trial, which measured window is the first steady one.
    """
    estimated = estimate_cells(dataset, steady_from=steady_from)
    cells: list[CellResult] = []
    for run in dataset.runs:
        is_until_answered = stopping.is_until_answered(run)
        compare = answered.compared if is_until_answered else compared
        cells += compare(run, estimated[run.info.name], equivalence)
    cells.sort(key=_rank)
    first = dataset.runs[0]
    repeated = {
        run.info.name: _repetition(run, dataset.trials, estimated[run.info.name])
        for run in dataset.runs
    }
    results = Results(
        title=first.info.title,
        question=first.question,
        runs=tuple(replace(run.info, repetition=repeated[run.info.name]) for run in dataset.runs),
        cells=tuple(cells),
        holes=tuple(hole for run in dataset.runs for hole in run.holes),
        varied=_varied(cells),
        warnings=(),
    )
    damaged = [text for cell in cells for trial in cell.trials for text in trial.damaged]
    warnings = (*dataset.warnings, *damaged, *criticise(results, dataset))
    shown: Results = redact_values(replace(results, warnings=warnings))
    return shown


def _repetition(
    run: RunRecord, trials: Sequence[TrialRecord], cells: Sequence[CellResult]
) -> Repetition | None:
    if stopping.is_until_answered(run):
        return answered.so_far(run, trials, cells)
    return stopping.so_far(run, trials, cells)


def estimate_cells(
    dataset: Dataset, *, steady_from: int | None = None
) -> dict[str, list[CellResult]]:
    """Judge every trial and estimate every cell, by run; nothing is compared yet."""
    units = {(run.info.name, cell.key): cell.unit for run in dataset.runs for cell in run.cells}
    runs = {run.info.name: run for run in dataset.runs}
    tolerated = {run.info.name: run.info.measure.get("tolerate") or () for run in dataset.runs}

    def judged(record: TrialRecord, streams: Sequence[Stream], begin: Steady | None) -> TrialResult:
        return judge_trial(
            record,
            streams,
            units[record.run, record.outcome.cell_key],
            begin=begin,
            tolerated=tolerated[record.run],
            run=runs[record.run],
        )

    by_hand = None
    if steady_from is not None:
        by_hand = Steady(max(0, steady_from), f"set by hand to window {steady_from}", True)
    # an attempt that somebody cancelled says nothing of the cell, and is made again
    ended = [record for record in dataset.trials if record.outcome.ended is not Ended.CANCELLED]
    ran = gate_results.fingerprints_by_cell(ended)
    records: dict[tuple[str, str], list[TrialRecord]] = {place: [] for place in units}
    trials: dict[tuple[str, str], list[TrialResult]] = {place: [] for place in units}
    for record, streams in read_streams(ended):
        place = (record.run, record.outcome.cell_key)
        if place in units:
            records[place].append(record)
            trials[place].append(judged(record, streams, by_hand))
    for place, own in records.items() if by_hand is None else ():
        common = beginnings.shared(trials[place], partial(_step_times, own))
        if common is not None:
            trials[place] = [judged(*both, common) for both in read_streams(own)]
    return {
        run.info.name: [
            _cell(
                run,
                cell,
                _believed(run, trials[run.info.name, cell.key]),
                gate_results.gate_of(run, cell, ran.get((run.info.name, cell.key), ())),
                dataset.others.get((run.info.name, cell.key)),
            )
            for cell in run.cells
        ]
        for run in dataset.runs
    }


def _step_times(records: Sequence[TrialRecord]) -> list[NDArray[np.float64]]:
    complete = ((record, streams) for record, streams in read_streams(records))
    return [step_times(streams) for record, streams in complete if has_windows(record, streams)]


def _believed(run: RunRecord, trials: Sequence[TrialResult]) -> tuple[TrialResult, ...]:
    """Let trials count, though they stood still, where all of the cell do at the same place."""
    tolerated = list(run.info.measure.get("tolerate") or ())
    if not recurring.is_own_stall(trials):
        return _counted(trials, rejecting(tolerated))
    why = "most trials of this cell stand still there: the program itself does, and it counts"
    told = [
        trial if trial.stall_at is None else replace(trial, evidence=(*trial.evidence, why))
        for trial in trials
    ]
    return _counted(told, rejecting([*tolerated, recurring.STALLED]))


def _counted(trials: Sequence[TrialResult], rejected: frozenset[str]) -> tuple[TrialResult, ...]:
    """Let one attempt per block count: the last that ended well and was not rejected.

    None of the pilot block does: what chooses the reference must not be compared with it.
    """
    best: dict[int, int] = {}
    for index, trial in enumerate(trials):
        if trial.block == PILOT or trial.verdict in rejected:
            continue
        if trial.rate is not None:
            best[trial.block] = index
    chosen = _of_one_cache(trials, set(best.values()))
    told = [replace(trial, counted=index in chosen) for index, trial in enumerate(trials)]
    return of_one_size(told)


def _of_one_cache(trials: Sequence[TrialResult], chosen: set[int]) -> set[int]:
    """Keep the trials with the commonest state of the page cache: never average cold and warm."""
    labels = Counter(fed.cache for index in chosen if (fed := trials[index].input) is not None)
    if len(labels) < 2:
        return chosen
    commonest = labels.most_common(1)[0][0]
    return {index for index in chosen if (fed := trials[index].input) and fed.cache == commonest}


def _cell(
    run: RunRecord,
    cell: CellRecord,
    trials: tuple[TrialResult, ...],
    gate: Gate,
    left_out: str | None,
) -> CellResult:
    rates = [trial.rate for trial in trials if trial.counted and trial.rate is not None]
    level = stopping.level(run)
    rate = _estimate(rates, f"{cell.unit}/s", level)
    epoch = None
    if rate is not None and cell.epoch_samples is not None:
        work = cell.epoch_samples * work_per_sample(cell.unit, cell.factors)
        epoch = _estimate([work / value for value in rates], "s", level)
    return CellResult(
        run=run.info.name,
        key=cell.key,
        label=cell.label,
        workload=cell.workload,
        framework=cell.framework,
        strategy=cell.strategy,
        factors=cell.factors,
        scale=cell.scale,
        platform=str(run.info.platform.get("name") or ""),
        unit=cell.unit,
        rate=rate,
        comparison=None,
        trials=trials,
        epoch_s=epoch,
        parameters=cell.parameters,
        macs=cell.macs,
        gate=gate,
        left_out=left_out,
        ran=what_ran(run.paths, cell.key, cell.factors, trials),
        utilisation=_medians([trial.utilisation for trial in trials if trial.counted]),
        versions={
            name: version
            for trial in trials
            for name, version in (trial.facts.get("versions") or {}).items()
        },
        readings=_readings([trial.readings for trial in trials if trial.counted]),
        options=cell.options,
        content=cell.content,
        own_files=cell.own_files,
        against=cell.against,
    )


def _medians(trials: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Give the median of each figure over the trials that have it."""
    names = dict.fromkeys(name for one in trials for name in one)
    return {name: estimate.median([one[name] for one in trials if name in one]) for name in names}


def _readings(trials: Sequence[Sequence[Reading]]) -> tuple[Reading, ...]:
    """Give the median of each reading over the trials, and the highest peak."""
    groups: dict[tuple[str, str, str], list[Reading]] = {}
    for reading in (reading for trial in trials for reading in trial):
        groups.setdefault((reading.node, reading.scope, reading.name), []).append(reading)
    return tuple(
        replace(
            some[0],
            mean=estimate.median([one.mean for one in some]),
            peak=max((one.peak for one in some if one.peak is not None), default=None),
        )
        for some in groups.values()
    )


def _estimate(values: Sequence[float], unit: str, level: float) -> Estimate | None:
    if not values:
        return None
    order = estimate.centre_interval(values, level)
    interval = None
    if order is not None:
        interval = Interval(order.low, order.high, order.level, order.meaning)
    return Estimate(estimate.centre(values), unit, len(values), interval)


def _rank(cell: CellResult) -> tuple[str, bool, float]:
    return (cell.task, cell.rate is None, -cell.rate.value if cell.rate else 0.0)


def _varied(cells: Sequence[CellResult]) -> tuple[str, ...]:
    """Name what differs between cells, in the order in which factors are stated."""
    names = dict.fromkeys(name for cell in cells for name in cell.factors)
    return tuple(
        name for name in names if len({repr(cell.factors.get(name)) for cell in cells}) > 1
    )
