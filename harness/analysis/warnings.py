"""Warn in plain words of what a reader must know before believing results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from harness.analysis import stopping
from harness.analysis.context.trial_tally import Tally, tally
from harness.analysis.results import Results
from harness.analysis.scaling.efficiency import too_efficient
from harness.analysis.trial_warnings import mark_warnings, verdict_warnings
from harness.stats.answers import FEWEST_BLOCKS
from harness.stats.estimate import LEVEL, coverage, trials_for
from harness.store.dataset import Dataset
from harness.store.layout import TrialName
from harness.store.outcome import Ended, Outcome
from harness.store.records import (
    DIFFERS,
    EXAMINATION_FAILED,
    IN_PART,
    NOT_CHECKED,
    RunInfo,
)
from harness.store.run_code import doubts
from harness.store.run_directory.due import read_due
from harness.units import counted, listed
from harness.verdicts.results import CellResult
from harness.verdicts.what_ran import NOT_PROBED, WATCHED
from harness.worker.network.precisions import precision_of

_GATE_WORDS = {
    DIFFERS: ("failed the equivalence gate and cannot be ranked",) * 2,
    EXAMINATION_FAILED: (
        "could not be examined by the equivalence gate and cannot be ranked",
        "could not be examined by the equivalence gate and cannot be ranked",
    ),
    IN_PART: (
        "was proved in part only: its result of the gate says what is not shown",
        "were proved in part only: their results of the gate say what is not shown",
    ),
    NOT_CHECKED: (
        "was not checked for computing the same thing as the others",
        "were not checked for computing the same thing as the others",
    ),
}
"""Of one cell and of several."""

WIDE = 0.10
"""An interval wider than 10 % of its number is called wide."""


def criticise(results: Results, dataset: Dataset) -> tuple[str, ...]:
    """List every warning, the gravest first."""
    return (
        *too_efficient(results),
        *_completeness(dataset, results, tally(results.cells)),
        *_provenance(dataset, results),
        *_starts(results),
        *_claims(results),
        *_repetition(results),
        *_further_looks(dataset),
        *_nodes(results),
        *_precision(results.cells),
        *_batches(results.cells),
        *verdict_warnings(results.cells),
        *_comparisons(results.cells),
        *mark_warnings(results.cells, dataset),
    )


def _completeness(dataset: Dataset, results: Results, trials: Tally) -> Iterator[str]:
    if dataset.left_out:
        yield (
            f"{counted(dataset.left_out, 'trial')} of another origin than "
            f"{' or '.join(dataset.origins)} left out."
        )
    else:
        yield from _left(dataset, results)
    others = [origin for origin in dataset.origins if origin != "measured"]
    if others:
        yield f"These results include {' and '.join(others)} trials; they measure no machine."
    ended = Counter(trial.outcome for trial in trials.made if trial.outcome != Ended.OK)
    for outcome, count in ended.most_common():
        yield f"{trials.out_of(count)} ended {outcome}; not counted."
    wordless = sum(trial.outcome == Ended.OK and trial.rate is None for trial in trials.made)
    if wordless:
        yield f"{trials.out_of(wordless)} ended well but gave no rate; not counted."


def _left(dataset: Dataset, results: Results) -> Iterator[str]:
    """Name the runs that were not carried out to their end, or to where enough was known."""
    repetitions = {run.name: run.repetition for run in results.runs}
    outcomes: dict[str, dict[str, dict[TrialName, Outcome]]] = {}
    for trial in dataset.trials:
        of_run = outcomes.setdefault(trial.run, {})
        of_run.setdefault(trial.outcome.cell_key, {})[trial.name] = trial.outcome
    for run in dataset.runs:
        due = read_due(run.paths, outcomes.get(run.info.name, {}))
        told = repetitions[run.info.name]
        if told is not None:
            due.leave({**due.left_after, **told.left})
            if told.stopped:
                due.stop_after(told.blocks)
        count = due.count()
        if count.left:
            which = "The run" if len(dataset.runs) == 1 else run.info.name
            yield f"{which} is not complete: {count}."


def _starts(results: Results) -> Iterator[str]:
    """Name the trials of a network that started from something else than most."""
    found: dict[tuple[str, str, int, tuple[str, object, str]], dict[str, list[str]]] = {}
    for cell in results.cells:
        for trial in cell.trials:
            for what, digest in (trial.facts.get("start") or {}).items():
                if digest is not None and what in ("weights", "batch"):
                    length = cell.factors.get("sequence")
                    held = precision_of(cell.factors.get("precision")).held
                    how = (what, length, held)  # narrow weights start from rounded ones
                    alike = (cell.run, cell.workload, cell.scale.batch_per_rank, how)
                    name = f"trial {trial.block} of {results.names[cell.run, cell.key]}"
                    found.setdefault(alike, {}).setdefault(digest, []).append(name)
    for (_, workload, batch, (what, *_)), names in found.items():
        odd = sorted(names.values(), key=len)[:-1]
        if odd:
            trials = ", ".join(name for some in odd for name in some)
            yield f"{workload} at batch {batch}: {trials} started from another {what} than others."


def _provenance(dataset: Dataset, results: Results) -> Iterator[str]:
    fingerprints: dict[tuple[str, str], set[str]] = {}
    for trial in dataset.trials:
        cell = (trial.run, trial.outcome.cell_key)
        fingerprints.setdefault(cell, set()).add(trial.outcome.fingerprint)
    changed = sum(len(seen) > 1 for seen in fingerprints.values())
    if changed or any(trial.outcome.mixed for trial in dataset.trials):
        yield (
            f"Code or environment changed within {counted(max(changed, 1), 'cell')}: their trials "
            "were resumed with --mix and do not measure one thing."
        )
    for tested in results.cells:
        for words in _torn_variables(tested):
            name = results.names[tested.run, tested.key]
            yield f"{name}: its trials did not see the same variables: {words}."
    for run in dataset.runs:
        for doubt in doubts(run.paths):
            yield f"{run.info.name}: {doubt}."
        yield from _edited(run.info)
    states = Counter(cell.gate.state for cell in results.cells if cell.trials)
    for state, (one, several) in _GATE_WORDS.items():
        if states[state]:
            yield f"{counted(states[state], 'cell')} {one if states[state] == 1 else several}."
    if any(cell.factors.get("compile_cache") == "cold" for cell in results.cells):
        yield "Some cells ran with cold compile caches: their first steps include compiling."


def _torn_variables(cell: CellResult) -> Iterator[str]:
    """Say which variables differ between the trials of a cell, and in how many."""
    seen = [trial.facts["variables"] for trial in cell.trials if "variables" in trial.facts]
    for name in sorted({name for one in seen for name in one}):
        values = Counter(one.get(name, "unset") for one in seen)
        if len(values) > 1:
            told = ", ".join(f"{value} in {count}" for value, count in values.most_common())
            yield f"{name}: {told}"


def _edited(run: RunInfo) -> Iterator[str]:
    """Name environments that are not what was installed."""
    for name, facts in run.environments.items():
        files = facts.get("edited") if isinstance(facts, Mapping) else None
        if isinstance(files, list) and files:
            yield (
                f"{run.name}: the environment of {name} is not as it was installed: "
                f"{listed(list(map(str, files)))}."
            )


def _claims(results: Results) -> Iterator[str]:
    """Name the cells that asked for something that did not run, with the evidence."""
    said: dict[str, list[str]] = {}
    for cell in results.cells:
        name = results.names[cell.run, cell.key]
        for one in cell.ran.contradictions:
            if not one.is_grave:  # else it is why the cell is not ranked
                said.setdefault(str(one), []).append(name)
    for cell in results.cells:
        if cell.ran.probe not in (WATCHED, NOT_PROBED):
            why = f"what really ran is not known; its probe ended {cell.ran.probe}"
            said.setdefault(why, []).append(results.names[cell.run, cell.key])
    yield from (f"{listed(names)}: {why}." for why, names in said.items())


def _repetition(results: Results) -> Iterator[str]:
    for run in results.runs:
        if run.repetition is not None and not (run.repetition.stopped and run.repetition.narrow):
            yield str(run.repetition)


def _further_looks(dataset: Dataset) -> Iterator[str]:
    yield from filter(None, map(stopping.further_looks, dataset.runs))


def _nodes(results: Results) -> Iterator[str]:
    """Warn where intervals describe the nodes used rather than the whole machine."""
    for run in results.runs:
        there = run.platform.get("nodes")
        if run.is_simulated or not there or there < 2:
            continue
        cells = [cell for cell in results.cells if cell.run == run.name and cell.rate is not None]
        sets = {cell.key: {trial.nodes for trial in cell.trials if trial.counted} for cell in cells}
        bound = [seen for seen in sets.values() if len(seen) == 1]
        if bound:
            named = ", ".join(sorted({node for seen in bound for nodes in seen for node in nodes}))
            yield (
                f"{counted(len(bound), 'cell')} ran all trials on the same nodes ({named}): the "
                f"intervals speak of these nodes, not of all {there}. Trials of several "
                "allocations would (`bakeoff run --detach --spread 3`)."
            )
        if (torn := _torn_blocks(cells)) > 0:
            yield (
                f"In {counted(torn, 'block')} cells of as many nodes ran on different ones: what "
                "sets these nodes apart is in their comparison."
            )


def _torn_blocks(cells: Sequence[CellResult]) -> int:
    """Count the blocks in which cells of one size did not share their nodes."""
    seen: dict[tuple[int, int], set[tuple[str, ...]]] = {}
    for cell in cells:
        for trial in cell.trials:
            if trial.counted:
                seen.setdefault((trial.block, len(trial.nodes)), set()).add(trial.nodes)
    return len({block for (block, _), sets in seen.items() if len(sets) > 1})


def _precision(cells: Sequence[CellResult]) -> Iterator[str]:
    known = [cell.rate for cell in cells if cell.rate is not None]
    enough = trials_for(LEVEL)
    few = [rate.n for rate in known if rate.n < enough]
    if few:
        least = min(few)
        sure = f"only {coverage(least, 1) * 100:.0f} %" if least > 1 else "nothing"
        yield (
            f"{counted(len(few), 'cell')} with fewer than {enough} counted trials: with {least} "
            f"an interval promises {sure}, not 95 %."
        )
    widths = [
        (rate.interval.high - rate.interval.low) / rate.value
        for rate in known
        if rate.interval is not None
    ]
    wide = [width for width in widths if width > WIDE]
    if wide:
        yield (
            f"{counted(len(wide), 'cell')} with an interval wider than {WIDE * 100:.0f} % of the "
            f"number (the widest {max(wide) * 100:.0f} %): more trials or a quieter machine would "
            "narrow it."
        )


def _batches(cells: Sequence[CellResult]) -> Iterator[str]:
    for workload in dict.fromkeys(cell.workload for cell in cells):
        stated = {
            cell.scale.is_strong
            for cell in cells
            if cell.workload == workload and cell.rate is not None
        }
        if len(stated) > 1:
            yield (
                f"{workload}: some cells state the batch of one device, others that of all devices "
                "together; their steps are not the same work."
            )


def _comparisons(cells: Sequence[CellResult]) -> Iterator[str]:
    compared = [cell.comparison for cell in cells if cell.comparison is not None]
    others = [answer for answer in compared if answer.answer != "reference"]
    unanswered = [answer for answer in others if answer.answer in ("cannot tell", "contended")]
    few = [answer for answer in unanswered if answer.blocks < FEWEST_BLOCKS]
    if few:
        least = min(answer.blocks for answer in few)
        yield (
            f"{counted(len(few), 'comparison')} on fewer than {FEWEST_BLOCKS} common blocks "
            f"({least}): they cannot tell, whatever the difference."
        )
    pilots = [
        answer for answer in compared if answer.answer == "reference" and "pilot" in answer.why
    ]
    if pilots and others:
        tasks = len(compared) - len(others)
        some = "" if len(pilots) == tasks else f" for {len(pilots)} of {tasks} tasks"
        yield (
            f"No reference was declared{some}: the fastest cell of a pilot block is it, and that "
            "block is discarded. `measure.reference` saves it."
        )
