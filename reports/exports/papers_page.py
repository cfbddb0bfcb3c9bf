"""Write ``docs/papers.md``: each claim of the papers with its cells and what was measured of it.

``python -m reports.exports.papers_page [RUN …]`` enters the answers of runs of the shipped studies
into ``docs/papers.json``, each in place of an older one of the same finding and size, and writes
the page anew; without a run it only does the latter. A test says when that is due. A run that has
no answer to a finding leaves an older answer alone, and so does one of a few cells whose answer is
of others than the finding means.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path

from harness.analysis.papers.finding_cells import alone, pairs
from harness.analysis.papers.finding_measures import why_impossible
from harness.analysis.papers.paper_findings import NO_CELL, in_doubt
from harness.analysis.read import run_directories
from harness.plan.cell import Cell
from harness.plan.plan import Plan, make_plan
from harness.platform.platform import load_platform
from harness.study.claims import CLAIMS, PAPERS
from harness.study.finding import FindingTable
from harness.study.matrix import selection
from harness.study.study import Study, load_study, study_files
from reports.exports.paper_answers import ANSWERS, WHOLE, Recorded, answers, merged, recorded
from reports.exports.unseen_machines import unseen_machines

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "papers.md"
SIZES = ("smoke", "node", "paper")
ALL_THERE = "simulated-papers"
"""A platform that lacks nothing the studies ask for."""
_HEAD = """\
# The papers' claims

Bakeoff's studies follow five papers. Their abstracts make {claims} named claims; here each has the
study and the cells that ask the same question, and what was measured, with the size at which it
was. {measured} of them were measured, {stand_ins} of these by a stand-in alone, which its row
names; for {undisturbed}, no other program ran beside at least one answer; {smoke} were measured at
smoke size alone, on tiny networks. Not measured: {left}, which takes a GPU, as do copies to a
device in `wang2018/overheads` and what `shams2017/utilisation` asks of GPUs. Frameworks that
users build themselves were [built for this](frameworks.md), and are in no CI. A claim counts as
measured where one of its rows is; none counts by a model. Questions that have not been run yet:
{unrun}. Of {answers} answers {single} are of one trial a cell; {keyless} were entered before their
cells were kept, so that nothing checks that studies still have them; of {known} the verdicts of
their trials are kept, of which {doubtful} rest on a trial that was not steady, as their rows say.

This page is generated: `python -m reports.exports.papers_page RUN …` enters the answers of runs of
the shipped studies and writes it anew. Each measure is explained in [studies](studies.md#finding).
Sizes in brackets are those whose plan has the cells, on a machine that lacks nothing; an answer is
of the size, of the machine and of the day that it names, and n is its number of trials. Answers at
smoke size are of tiny networks, those at node size of the papers' own, in shorter trials than the
studies ask for ([how they were cut](measured.md#the-papers-studies-at-node-size-28-november-2026)):
they show that the question is answered, not that the paper's figure is met, and one trial tells no
direction: bae2019's training in a container was 1.11 times as fast in the morning, and 0.858 times
at noon. A tier that is held back has a limit of bytes and one of requests, and both decide its
ratios, not the device of its name: more threads gain nothing where requests are the limit. In short
trials it gives up to a third more than its limit of bytes, and more requests until the limit bites.
No answer says more than its cell: a folder of one machine that a platform calls a burst buffer is
that folder, and between pretended hosts, namespaces of one machine, lies no network but its
kernel's.
*Beside other work*: another program shared the cores of a trial behind the answer, so that its
figure says how the question is answered and little of the machine; an undisturbed one takes its
place.
"""


def studies() -> tuple[Study, ...]:
    """Give the shipped studies that measure claims."""
    loaded = (load_study(path) for path in study_files().values())
    return tuple(study for study in loaded if study.claims)


def sizes_of(study: Study) -> tuple[tuple[str, ...], ...]:
    """Give for each finding the sizes whose plan has all cells that it names."""
    machine = load_platform(ALL_THERE)
    plans = {size: make_plan(load_study(study.path, size=size), machine) for size in SIZES}
    return tuple(
        tuple(size for size, plan in plans.items() if candidates(plan, finding))
        for finding in study.findings
    )


def is_meant(one: Recorded) -> bool:
    """Tell whether an answer is to a finding that there is, and of the cells that it means.

    Of all that its size has: a run may have a few of them, and is of its study as that was.
    """
    asked = (one.claim, one.question, one.measure)
    if one.study not in study_files():
        return False
    study, plan = _planned(one.study, one.size)
    findings = [x for x in study.findings if (x.claim, x.question, x.measure) == asked]
    if one.value is None:
        return bool(findings)
    found = [sides for x in findings for sides in candidates(plan, x)]
    return one.cells in {tuple(some.key for some in sides) for sides in found}


@cache
def _planned(name: str, size: str) -> tuple[Study, Plan]:
    study = load_study(study_files()[name], size=None if size == WHOLE else size)
    return study, make_plan(study, load_platform(ALL_THERE))


def candidates(plan: Plan, finding: FindingTable) -> Sequence[tuple[Cell, ...]]:
    """Give the cells of a plan, or pairs of them, that answer a finding equally well."""
    if finding.over is None:
        return [(one,) for one in alone(plan.cells, selection(finding.of))]
    return pairs(plan.cells, selection(finding.of), selection(finding.over))


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
    themselves = {one.claim for one in measured if one.question not in _stand_ins()}
    nodes = {one.claim for one in measured if one.size != "smoke"}
    claims = {one.claim for one in measured}
    run = {(one.study, one.question, one.measure) for one in entered}
    asked = [(study.name, one) for study in studies() for one in study.findings if one.claim]
    counts = {
        "unrun": sum((name, one.question, one.measure) not in run for name, one in asked),
        "answers": len(measured),
        "single": sum(one.n == 1 for one in measured),
        "keyless": sum(not one.cells for one in measured),
        "measured": len(claims),
        "stand_ins": len(claims - themselves),
        "undisturbed": len(alone),
        "smoke": len(claims - nodes),
        "left": ", ".join(f"`{one}`" for one in CLAIMS if one not in claims),
        "known": sum(one.doubt is not None for one in measured),
        "doubtful": sum(bool(one.doubt) for one in measured),
    }
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
    stand_in = f"*Stand-in: {finding.stand_in}.* " if finding.stand_in else ""
    asked = f"{finding.question} {stand_in}{cells} ({', '.join(sizes)})"
    told = "<br>".join(_told(one, machines, sizes) for one in own) or "not run yet"
    row = (claim, f"[{study.name}](../studies/{study.path.name})", asked, f"`{finding.measure}`")
    return f"| {' | '.join(map(_cell, (*row, finding.paper, told)))} |"


def _stand_ins() -> set[str]:
    return {one.question for study in studies() for one in study.findings if one.stand_in}


def _told(one: Recorded, machines: Sequence[str], sizes: Sequence[str]) -> str:
    if one.answer == NO_CELL and one.size not in sizes:
        others = f"; of size {' and '.join(sizes)} there is one" if sizes else ""
        return f"{one.size}: not measured: this size has no such cell{others}"
    if one.value is None:
        return f"{one.size}: {one.answer}"
    if why := why_impossible(one.measure, one.value):
        return f"{one.size}: no answer: {why} ({one.answer})"
    origin = "simulated, not measured; " if one.simulated else ""
    origin += "beside other work; " if one.beside_other_work else ""
    where = f"machine {machines.index(one.machine) + 1}; {one.day}"
    where += "" if one.cells else "; which cells answered was not kept"
    return f"**{one.size}**: {origin}{one.answer}{in_doubt(one.doubt or '')} ({where})"


def _is_of(one: Recorded, study: Study, finding: FindingTable) -> bool:
    asked = (study.name, finding.question, finding.measure)
    return (one.study, one.question, one.measure) == asked


def _written(table: Mapping[str, object]) -> str:
    return ", ".join(f"{name} = {json.dumps(one)}" for name, one in table.items())


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def meant(new: Sequence[Recorded]) -> Iterator[Recorded]:
    """Give the answers that are of the cells that are meant, and name the others."""
    for one in new:
        if is_meant(one):
            yield one
        else:
            sys.stderr.write(f"Not entered, something else is asked: {one.question} {one.answer}\n")


def main(names: Sequence[str]) -> None:
    """Enter the runs' answers, and write the page."""
    new = [one for run in run_directories(names) for one in answers(run)] if names else []
    entered = merged(recorded() if ANSWERS.exists() else (), list(meant(new)))
    written = json.dumps([asdict(one) for one in entered], indent=1, ensure_ascii=False)
    ANSWERS.write_text(written + "\n", "utf-8")
    PAGE.write_text(text(entered), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
