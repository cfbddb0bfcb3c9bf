"""The answers of runs to the papers' findings, as ``docs/papers.json`` keeps them."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.analysis import numbers
from harness.analysis.context.machine_words import began_on, machine_in_words
from harness.analysis.papers.finding_cells import differing
from harness.analysis.papers.finding_measures import why_impossible
from harness.analysis.papers.paper_findings import NO_CELL, Answer, findings
from harness.analysis.read import read_results
from harness.analysis.results import Results
from harness.sections.contract.gather import questions
from harness.store.record_readers.run_reader import read_run
from harness.store.records import RunInfo

WHOLE = "whole"
"""The size of a run that narrowed nothing."""
ANSWERS = Path(__file__).parents[2] / "docs" / "papers.json"


@dataclass(frozen=True)
class Recorded:
    """The answer of one run to one finding."""

    study: str
    claim: str
    question: str
    measure: str
    size: str
    answer: str
    value: float | None
    low: float | None
    high: float | None
    unit: str
    n: int
    machine: str
    day: str
    simulated: bool
    beside_other_work: bool = False
    """Whether another program shared the cores of a trial that it is of."""
    cells: tuple[str, ...] = ()
    """The keys of the cells that it is of; empty where an older version entered it."""
    doubt: str | None = None
    """The worst verdict of a trial that it is of; None where an older version entered it."""

    @property
    def key(self) -> tuple[str, str, str, str, bool]:
        """What a newer answer replaces."""
        return (self.study, self.question, self.measure, self.size, self.simulated)

    @property
    def is_impossible(self) -> bool:
        """Tell whether its figure cannot be: then something slowed the baseline."""
        return bool(why_impossible(self.measure, self.value))

    @property
    def is_measured(self) -> bool:
        """Tell whether it answers the question by a figure that can be true."""
        return self.value is not None and not self.is_impossible


def recorded() -> tuple[Recorded, ...]:
    """Read the answers that were entered."""
    entered = json.loads(ANSWERS.read_text("utf-8"))
    return tuple(Recorded(**{**one, "cells": tuple(one.get("cells", ()))}) for one in entered)


def answers(directory: Path) -> Iterator[Recorded]:
    """Give a run's answers to its study's findings."""
    results, record = read_results([directory]), read_run(directory)
    (run,) = results.runs
    for found in findings(results, questions(results, _warned)):
        answer = found.answer
        if answer.text == NO_CELL and record.is_narrowed:
            continue  # it was not asked for, which says nothing of the size
        if run.is_simulated and not _is_modelled(results, answer):
            continue  # what a model does not know says nothing of the machine
        yield Recorded(
            record.study,
            found.claim,
            found.question,
            found.measure,
            record.size or WHOLE,
            _of_a_model(answer) if run.is_simulated else answer.text,
            answer.value,
            *((None, None) if run.is_simulated else (answer.low, answer.high)),
            *(answer.unit, answer.n),
            _machine(results, run),
            numbers.moment(run.started_wall_ns)[:10],
            run.is_simulated,
            answer.beside_other_work,
            answer.cells if answer.value is not None else (),
            None if run.is_simulated else answer.doubt,
        )


def _is_modelled(results: Results, answer: Answer) -> bool:
    """Tell whether a model answered by what it knows: more nodes, or links between GPUs.

    Ranks without GPUs share their node by its own formula, which says nothing that could be else.
    """
    if answer.value is None:
        return False
    one, *others = (cell for cell in results.cells if cell.key in answer.cells)
    known = {"nodes", "peer"} | ({"ranks_per_node"} if one.factors["device"] == "gpu" else set())
    return any(not known.isdisjoint(differing(one, other)) for other in others)


def _of_a_model(answer: Answer) -> str:
    """Leave out the interval: it holds what the model draws, and nothing of what is assumed."""
    against = f" against {answer.over}" if answer.over else ""
    return f"{numbers.number(answer.value)} {answer.unit}; {answer.of}{against}"


def _machine(results: Results, run: RunInfo) -> str:
    words = machine_in_words(results, run)
    if run.is_simulated:
        settings = run.platform["launcher"].get("settings") or {}
        assumed = ", ".join(f"{name.replace('_', ' ')} {one}" for name, one in settings.items())
        words = f"{run.platform.get('title')}: {words}; taken for granted: {assumed}"
    if began := began_on(run):
        words += f", started on {began}"
    tiers = run.platform.get("storage") or {}
    told = (f"{name}: {one['kind']}" for name, one in tiers.items() if one.get("kind"))
    return "; ".join((words, *told))


def merged(old: Sequence[Recorded], new: Sequence[Recorded]) -> tuple[Recorded, ...]:
    """Put newer answers in the place of older ones that are no better."""
    kept = {one.key: one for one in old}
    for one in new:
        if one.key not in kept or _worth(one) >= _worth(kept[one.key]):
            kept[one.key] = one
    return tuple(kept[key] for key in sorted(kept))


def _worth(one: Recorded) -> tuple[int, int]:
    """Rank answers: none, one that was disturbed, one that was not; of such that of more trials."""
    return 0 if not one.is_measured else 1 if one.beside_other_work else 2, one.n


def _warned(problem: str) -> None:
    sys.stderr.write(f"{problem}\n")
