"""Answer a run that has two sides: each cell of B against its cell of A, block by block."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from harness.analysis.analyse import estimate_cells
from harness.analysis.between_runs.metrics import METRICS, Metric, logs
from harness.analysis.between_runs.run_comparison import Pair, Versus
from harness.analysis.blocks import lost_trials, paired_blocks
from harness.analysis.blocks.bias_of_turns import with_bias
from harness.analysis.blocks.compare_cells import answers_of, has_two_sides
from harness.errors import RunError
from harness.stats import compare
from harness.stats.answers import EQUIVALENCE
from harness.stats.between_runs.unpaired import Change
from harness.store.dataset import Dataset
from harness.store.records import RunRecord
from harness.units import counted
from harness.verdicts.results import CellResult, Comparison, Interval
from harness.verdicts.thresholds import rejecting
from harness.worker.redaction.redact import redact_values

_MEANING = "of both in one session, by sign flips of blocks"


def in_one_session(dataset: Dataset, metric: str = "rate") -> Versus:
    """Compare B with A, all cells together; refuse a run that has no two sides."""
    run = dataset.runs[0]
    estimated = estimate_cells(dataset)[run.info.name]
    if not has_two_sides(estimated):
        raise RunError(f"{run.info.directory}: this run has no two sides; name a second run")
    found = {cell.key: redact_values(cell) for cell in estimated}
    both = [(found[one.against], found[one.key]) for one in run.cells if one.against in found]
    rejected = rejecting(run.info.measure.get("tolerate") or ())
    paired = {
        cell.key: _log_ratios(base, cell, METRICS[metric], rejected)
        for base, cell in both
        if not base.refusal and not cell.refusal
    }
    told = answers_of(
        run,
        {cell.key: (base, cell) for base, cell in both},
        {key: one for key, one in paired.items() if one},
        equivalence=EQUIVALENCE,
    )
    pairs, skipped = [], []
    for base, cell in both:
        label = cell.label.removesuffix(" · B")
        if cell.key not in told:
            skipped.append((label, _why_not(base, cell)))
            continue
        answer = told[cell.key]
        change = _changed(base, cell, answer, is_rate=metric == "rate")
        pairs.append(Pair(base.key, label, cell.workload, base, cell, change, is_together=True))
    blocks = max((pair.change.before for pair in pairs), default=0)
    compared: Versus = redact_values(
        Versus(
            metric=metric,
            before=replace(run.info, name="A"),
            after=replace(run.info, name="B"),
            pairs=tuple(pairs),
            not_compared=(*skipped, *((hole.label, hole.why) for hole in run.holes)),
            differences=tuple(dict.fromkeys(_differences(both))),
            warnings=(_assumed(run, blocks),),
        )
    )
    return compared


def _assumed(run: RunRecord, blocks: int) -> str:
    return (
        f"{run.info.title}: measured in one session, in {counted(blocks, 'block')}; what the day "
        "does to both cancels."
    )


def _log_ratios(
    base: CellResult, cell: CellResult, metric: Metric, rejected: frozenset[str]
) -> Mapping[int, float]:
    if metric is METRICS["rate"]:
        return paired_blocks.log_ratios(cell, base, rejected=rejected)
    ours, theirs = logs(cell, metric), logs(base, metric)
    return {block: ours[block] - theirs[block] for block in ours if block in theirs}


def _changed(
    base: CellResult, cell: CellResult, answer: compare.Answer, *, is_rate: bool
) -> Change:
    interval = None
    if answer.low is not None and answer.high is not None:
        interval = Interval(answer.low, answer.high, answer.level, _MEANING)
    told = Comparison(
        base.key,
        answer.ratio,
        interval,
        answer.answer,
        answer.blocks,
        answer.more_blocks,
        answer.why,
    )
    if is_rate:
        told = with_bias(told, base, cell, EQUIVALENCE)
    if answer.is_bound:
        told = lost_trials.as_bound(told)
    why = told.why
    if told.answer == "cannot tell" and told.more_blocks:
        why += (
            f"; about {counted(told.more_blocks, 'more block')} would tell (bakeoff resume --more)"
        )
    return Change(
        told.ratio,
        told.interval.low if told.interval else None,
        told.interval.high if told.interval else None,
        answer.level,
        answer.p,
        told.answer,
        answer.blocks,
        answer.blocks,
        why,
        is_between=True,
        is_bound=answer.is_bound,
    )


def _why_not(base: CellResult, cell: CellResult) -> str:
    for one, side in ((base, "A"), (cell, "B")):
        if one.refusal:
            return f"on side {side} {one.refusal}"
        if one.rate is None:
            reasons = [trial.reason for trial in one.trials if trial.reason]
            return f"no figure on side {side}" + (f": {reasons[0]}" if reasons else "")
    return "no block has a figure of both sides"


def _differences(
    both: Sequence[tuple[CellResult, CellResult]],
) -> Iterator[tuple[str, str, str]]:
    for base, cell in both:
        if base.framework != cell.framework:
            yield "framework", base.framework, cell.framework
        for what, old, new in (
            ("", base.factors, cell.factors),
            (f"{cell.framework}: ", base.options, cell.options),
            (f"{cell.framework}: ", base.versions, cell.versions),
        ):
            for name in dict.fromkeys((*old, *new)):
                if old.get(name) != new.get(name):
                    yield f"{what}{name}", str(old.get(name, "–")), str(new.get(name, "–"))
