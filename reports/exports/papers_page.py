"""Write ``docs/papers.md``: each claim of the papers with its cells and what was measured of it.

``python -m reports.exports.papers_page [RUN …]`` enters the answers of runs of the shipped studies
into ``docs/papers.json``, each in place of an older one of the same finding and size, and writes
the page anew; without a run it only does the latter. A test says when that is due. A run that has
no answer to a finding leaves an older answer alone.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from harness.analysis import numbers
from harness.analysis.context.machine_words import began_on, machine_in_words
from harness.analysis.context.paper_findings import NO_CELL, findings
from harness.analysis.read import read_results, run_directories
from harness.analysis.results import Results
from harness.plan.plan import make_plan
from harness.platform.platform import load_platform
from harness.sections.contract.gather import questions
from harness.stats.scaling import NOISE_OVER_ONE
from harness.store.record_readers.run_reader import read_run
from harness.store.records import RunInfo
from harness.study.claims import CLAIMS, PAPERS
from harness.study.finding import FindingTable
from harness.study.study import Study, load_study, study_files
from reports.exports.finding_cells import finding_cells
from reports.exports.unseen_machines import unseen_machines

DOCS = Path(__file__).parents[2] / "docs"
PAGE, ANSWERS = DOCS / "papers.md", DOCS / "papers.json"
SIZES = ("smoke", "node", "paper")
ALL_THERE = "simulated-papers"
"""A platform that lacks nothing the studies ask for."""
_HEAD = """\
# The papers' claims

Bakeoff's studies follow five papers. Their abstracts make {claims} named claims; here each has the
study and the cells that ask the same question, and what was measured, with the size at which it
was. {measured} of them were measured; for {undisturbed} of these, no other program ran beside at
least one answer. Of the others the table says what is missing. A claim counts as measured where
one of its rows is, and a row says what it is of: NVLink's is of two processes without GPUs, Knights
Landing's of an ordinary processor's cores, CosmoFlow's of reading its volumes, not of training on
them.

This page is generated: `python -m reports.exports.papers_page RUN …` enters the answers of runs of
the shipped studies and writes it anew. Each measure is explained in [studies](studies.md#finding).
Sizes in brackets are those whose plan has the cells, on a machine that lacks nothing; an answer is
of the size, of the machine and of the day that it names. Answers at smoke size are of tiny networks
and one trial: they show that the question is answered, not that the paper's figure is met. No
answer says more than its cell: a folder of one machine that a platform calls a burst buffer is that
folder, and between pretended hosts, namespaces of one machine, lies no network but its kernel's.
*Beside other work*: another program shared the cores of a trial behind the answer, so that its
figure says how the question is answered and little of the machine; an undisturbed one takes its
place.
"""


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

    @property
    def key(self) -> tuple[str, str, str, str, bool]:
        """What a newer answer replaces."""
        return (self.study, self.question, self.measure, self.size, self.simulated)

    @property
    def is_impossible(self) -> bool:
        """Tell whether it is more than linear: then something slowed the baseline."""
        return self.measure == "efficiency" and (self.value or 0.0) > NOISE_OVER_ONE

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
        if answer.value is None and run.is_simulated:
            continue  # what a model does not know says nothing of the machine
        yield Recorded(
            record.study,
            found.claim,
            found.question,
            found.measure,
            record.size or "whole",
            answer.text,
            *(answer.value, answer.low, answer.high, answer.unit, answer.n),
            _machine(results, run),
            numbers.moment(run.started_wall_ns)[:10],
            run.is_simulated,
            answer.beside_other_work,
            answer.cells if answer.value is not None else (),
        )


def _machine(results: Results, run: RunInfo) -> str:
    words = machine_in_words(results, run)
    if run.is_simulated:
        words = f"{run.platform.get('title')}: {words}"
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


def _worth(one: Recorded) -> int:
    """Rank answers: none, one that was disturbed, one that was not."""
    return 0 if not one.is_measured else 1 if one.beside_other_work else 2


def studies() -> tuple[Study, ...]:
    """Give the shipped studies that measure claims."""
    loaded = (load_study(path) for path in study_files().values())
    return tuple(study for study in loaded if study.claims)


def sizes_of(study: Study) -> tuple[tuple[str, ...], ...]:
    """Give for each finding the sizes whose plan has all cells that it names."""
    machine = load_platform(ALL_THERE)
    plans = {size: make_plan(load_study(study.path, size=size), machine) for size in SIZES}
    return tuple(
        tuple(size for size, plan in plans.items() if finding_cells(plan, finding).is_whole)
        for finding in study.findings
    )


def text(entered: Sequence[Recorded]) -> str:
    """Write the page."""
    machines = list(dict.fromkeys(one.machine for one in entered if one.value is not None))
    by_claim: dict[str, list[str]] = {name: [] for name in CLAIMS}
    for study in studies():
        for finding, sizes in zip(study.findings, sizes_of(study), strict=True):
            if finding.claim:
                own = [one for one in entered if _is_of(one, study, finding)]
                by_claim[finding.claim].append(_row(study, finding, sizes, own, machines))
    measured = [one for one in entered if one.is_measured and not one.simulated]
    alone = {one.claim for one in measured if not one.beside_other_work}
    counts = {"measured": len({one.claim for one in measured}), "undisturbed": len(alone)}
    parts = [_HEAD.format(claims=len(CLAIMS), **counts)]
    for paper, (title, doi) in PAPERS.items():
        parts.append(f"## {paper}\n\n{title}, doi {doi}.\n\n{_COLUMNS}")
        for claim in (one for one in CLAIMS if one.startswith(f"{paper}/")):
            parts += by_claim[claim]
        parts.append("")
    parts += unseen_machines()
    if machines:
        parts += ["## Machines", ""]
        parts += [f"{number}. {words}." for number, words in enumerate(machines, 1)]
    return "\n".join(parts).rstrip() + "\n"


_COLUMNS = (
    "| claim | study | the question, its cells and sizes | measure | the paper | measured here |\n"
    "|---|---|---|---|---|---|"
)


def _row(
    study: Study,
    finding: FindingTable,
    sizes: Sequence[str],
    own: Sequence[Recorded],
    machines: Sequence[str],
) -> str:
    cells = f"`{_written(finding.of)}`"
    if finding.over is not None:
        cells += f" against `{_written(finding.over)}`"
    claim = f"`{finding.claim}`: {CLAIMS[finding.claim]}"
    asked = f"{finding.question} {cells} ({', '.join(sizes)})"
    told = "<br>".join(_told(one, machines, sizes) for one in own) or "not run yet"
    row = (claim, f"[{study.name}](../studies/{study.path.name})", asked, f"`{finding.measure}`")
    return f"| {' | '.join(map(_cell, (*row, finding.paper, told)))} |"


def _told(one: Recorded, machines: Sequence[str], sizes: Sequence[str]) -> str:
    if one.answer == NO_CELL and one.size not in sizes:
        others = f"; of size {' and '.join(sizes)} there is one" if sizes else ""
        return f"{one.size}: not measured: this size has no such cell{others}"
    if one.value is None:
        return f"{one.size}: {one.answer}"
    if one.is_impossible:
        return f"{one.size}: no answer: more than linear, so its baseline was slowed ({one.answer})"
    origin = "simulated, not measured; " if one.simulated else ""
    origin += "beside other work; " if one.beside_other_work else ""
    where = f"machine {machines.index(one.machine) + 1}; {one.day}"
    return f"**{one.size}**: {origin}{one.answer} ({where})"


def _is_of(one: Recorded, study: Study, finding: FindingTable) -> bool:
    asked = (study.name, finding.question, finding.measure)
    return (one.study, one.question, one.measure) == asked


def _written(table: Mapping[str, object]) -> str:
    return ", ".join(f"{name} = {json.dumps(one)}" for name, one in table.items())


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _warned(problem: str) -> None:
    sys.stderr.write(f"{problem}\n")


def main(names: Sequence[str]) -> None:
    """Enter the runs' answers, and write the page."""
    new = [one for run in run_directories(names) for one in answers(run)] if names else []
    entered = merged(recorded() if ANSWERS.exists() else (), new)
    written = json.dumps([asdict(one) for one in entered], indent=1, ensure_ascii=False)
    ANSWERS.write_text(written + "\n", "utf-8")
    PAGE.write_text(text(entered), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
