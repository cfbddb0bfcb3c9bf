"""Write how a run was measured, as a paragraph for a paper's LaTeX."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from harness import units
from harness.analysis.context.machine_words import named_machine, versions_in_words
from harness.analysis.context.trial_tally import tally
from harness.analysis.results import Results
from harness.errors import UsageError
from harness.store.records import EQUIVALENT, NOTHING
from harness.verdicts.thresholds import TOLERABLE
from reports.exports.formats.bibtex import keys_of
from reports.exports.formats.latex import escaped
from reports.figures.captions import intervals, ratios


def of_results(results: Results) -> str:
    """Say on what, how often, in which order, what counts, and what the numbers are."""
    if not any(cell.rate for cell in results.cells):
        raise UsageError("no trial gave a number that counts, so there are no methods to tell")
    cited = ",".join(keys_of(results))
    return f"{escaped(' '.join(_sentences(results)))}~\\cite{{{cited}}}\n"


def _sentences(results: Results) -> Iterator[str]:
    for run in results.runs:
        versions = versions_in_words(results, run)
        yield f"We measured on {named_machine(results, run)}, with {versions}."
    trials = tally(results.cells).made
    blocks = sorted({cell.rate.n for cell in results.cells if cell.rate})
    times = units.counted(blocks[-1], "time")
    times = f"{blocks[0]} to {times}" if len(blocks) > 1 else times
    factors = ", ".join(name.replace("_", " ") for name in _compared(results))
    yield (
        f"{units.counted(len(results.cells), 'configuration').capitalize()}"
        f"{f' (factors: {factors})' if factors else ''} ran {times} each, every trial in "
        "processes of its own, in blocks of random order "
        f"(seed {', '.join(str(run.seed) for run in results.runs)})."
    )
    for run in results.runs:
        warmup, until = _span(run.measure.get("warmup")), _span(run.measure.get("until"))
        if warmup and until:
            yield (
                f"A trial warmed up for {warmup} and was timed for {until}; windows before its "
                "steady state, found from the step times by one rule, do not count."
            )
    yield _counted(
        len(trials),
        ended=[t.outcome for t in trials if not t.counted and t.verdict is None],
        rejected=[t.verdict for t in trials if not t.counted and t.verdict is not None],
    )
    yield from _tolerated([str(t.verdict) for t in trials if t.counted])
    yield from _turns([bool(t.turns.alone) for t in trials if t.counted and t.turns is not None])
    yield (
        "A rate is the geometric mean over trials; configurations are compared by their ratios "
        "within blocks."
    )
    if known := intervals(results):
        yield f"{known}."
    if compared := ratios(results):
        yield f"{compared}."
    gates = Counter(cell.gate.state for cell in results.cells if cell.gate.state != NOTHING)
    if gates[EQUIVALENT] and gates.total() == gates[EQUIVALENT]:
        yield (
            "Outputs, loss, gradients and updates of every configuration were held to one "
            "reference in float64 before they were compared."
        )


def _compared(results: Results) -> list[str]:
    """Name what configurations differ in: a framework and a workload too, where there are more."""
    both = {
        "workload": {cell.workload for cell in results.cells},
        "framework": {cell.framework for cell in results.cells},
    }
    several = [name for name, values in both.items() if len(values) > 1]
    return [*several, *(name for name in results.varied if name not in both)]


def _tolerated(verdicts: list[str]) -> Iterator[str]:
    """Say which trials count although somebody disturbed them."""
    found = Counter(verdict for verdict in verdicts if verdict in TOLERABLE)
    if found:
        each = ", ".join(f"{count} were {verdict}" for verdict, count in sorted(found.items()))
        yield f"Of those that count, {each}, which the study tolerates."


def _turns(are_alone: list[bool]) -> Iterator[str]:
    """Say whether trials took turns, and how many could not; nothing where none was to."""
    if not all(are_alone):
        alone = f"; {sum(are_alone)} ran alone" if any(are_alone) else ""
        yield (
            "Trials of a block lived at the same time and took turns: one worked, the others were "
            f"stopped{alone}."
        )


def _span(recorded: object) -> str:
    """Print a span as a run records it: seconds, steps or both; empty where it says neither."""
    if not isinstance(recorded, Mapping):
        return str(recorded or "")
    seconds, steps = recorded.get("seconds"), recorded.get("steps")
    said = [f"{seconds:g} s"] if seconds else []
    said += [units.counted(steps, "step")] if steps else []
    return " and ".join(said)


def _counted(total: int, *, ended: list[str], rejected: list[str]) -> str:
    """Say how many trials count, which ended without a number and which were rejected."""
    if not ended and not rejected:
        return f"All {total} trials count."
    said = [f"{total - len(ended) - len(rejected)} of {total} trials count"]
    for why, found in (("ended without a number", ended), ("rejected by rule", rejected)):
        each = ", ".join(f"{count} {name}" for name, count in sorted(Counter(found).items()))
        said += [f"{why}: {each}"] if each else []
    return f"{'; '.join(said)}."
