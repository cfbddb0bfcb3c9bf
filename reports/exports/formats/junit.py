"""Write results as JUnit XML, so that a CI shows cells as test cases."""

from __future__ import annotations

from xml.etree.ElementTree import Element, SubElement, indent, tostring

from harness.analysis import numbers
from harness.analysis.ranking import Ranking
from harness.analysis.results import Results
from harness.verdicts.results import CellResult
from reports.exports.plain_text import plain


def _add(suite: Element, ranking: Ranking, cell: CellResult) -> None:
    name = ranking.name(cell)
    if len(ranking.runs) > 1:
        name = f"{name} on {ranking.machine(cell)}"
    case = SubElement(suite, "testcase", classname=plain(ranking.workload), name=plain(name))
    value, interval = numbers.estimate(cell.rate)
    compared = cell.comparison
    said = [f"{value} {ranking.unit} {interval}, n = {cell.rate.n}"] if cell.rate else []
    if compared and compared.answer == "reference":
        said.append("the reference")
    elif compared:
        said.append(f"{numbers.ratio(compared.ratio)} × reference: {compared.answer}")
    if cell.refusal:
        SubElement(case, "failure", message=plain(cell.refusal))
    elif cell.rate is None:
        reason = next((t.reason for t in cell.trials if t.reason), "no trial gave a number")
        SubElement(case, "failure", message=plain(reason))
    SubElement(case, "system-out").text = plain("\n".join(said))


def of_results(results: Results) -> str:
    """Write one suite per workload; a cell without a believable number fails, a hole is skipped."""
    root = Element("testsuites", name=plain(results.title))
    for ranking in results.rankings:
        suite = SubElement(root, "testsuite", name=plain(ranking.workload))
        for cell in (*ranking.cells, *ranking.set_aside, *ranking.without):
            _add(suite, ranking, cell)
    if results.holes:
        suite = SubElement(root, "testsuite", name="left out")
        for hole in results.holes:
            case = SubElement(suite, "testcase", classname="left out", name=plain(hole.label))
            SubElement(case, "skipped", message=plain(hole.why))
    for suite in root:
        suite.set("tests", str(len(suite)))
        suite.set("failures", str(len(suite.findall("testcase/failure"))))
        suite.set("skipped", str(len(suite.findall("testcase/skipped"))))
    indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root, encoding="unicode") + "\n"
