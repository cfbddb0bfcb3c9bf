"""Word a comparison of two runs: for a terminal, GitHub's summary, JUnit or JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from harness.analysis import numbers
from harness.analysis.between_runs.metrics import METRICS
from harness.analysis.between_runs.run_comparison import Pair, Versus
from harness.store.records import Hole

_MOST_DIFFERENCES = 20


@dataclass(frozen=True)
class ComparedCell:
    """A cell of two runs: the second against the first."""

    key: str
    label: str
    ratio: float | None
    """Above 1 is better."""
    low: float | None
    high: float | None
    level: float
    p: float | None
    answer: str
    why: str
    trials: tuple[int, int]
    """How many stand behind each side."""
    failed: bool
    """Whether it changed as --fail-if forbids."""
    is_bound: bool
    """Whether the difference is at least that, and perhaps larger: trials were lost."""
    sessions: int | None
    """How many runs say what sessions differ by; unknown, nothing does."""
    sessions_differ: float | None
    """By how much two sessions may differ while nothing changes (95 %), as a share."""


@dataclass(frozen=True)
class Difference:
    """Something besides the cells in which two runs differ."""

    what: str
    before: str
    after: str


@dataclass(frozen=True)
class ComparedRuns:
    """What `bakeoff compare --json` prints."""

    metric: str
    before: str
    after: str
    cells: tuple[ComparedCell, ...]
    not_compared: tuple[Hole, ...]
    differences: tuple[Difference, ...]
    warnings: tuple[str, ...]


def sentence(pair: Pair) -> str:
    """Say one cell's change: ``resnet50 · torch: 0.94 × (interval 0.92–0.96): slower``."""
    change = pair.change
    ratio = numbers.ratio(change.ratio, pair.interval)
    inside = "no interval"
    if pair.interval is not None:
        inside = f"interval {numbers.ratio_span(pair.interval, change.ratio)}"
    trials = f"{change.before} and {change.after} trials"
    if pair.scatter is not None:
        trials += f"; sessions differ by up to {numbers.share(pair.scatter.reach)}"
    is_open = pair.is_together and change.answer == "cannot tell"
    why = f", {change.why}" if not pair.is_judged or change.is_bound or is_open else ""
    return f"{pair.label}: {ratio} × ({inside}, {trials}): {change.answer}{why}"


def as_text(told: Versus, failed: Sequence[Pair] = ()) -> str:
    """Write everything for a terminal."""
    title = METRICS[told.metric].title
    lines = [f"{told.after.name} against {told.before.name}, {title}; above 1 is better"]
    lines += [f"  {sentence(pair)}" for pair in told.pairs]
    if told.not_compared:
        lines.append("Not compared:")
        lines += [f"  {label}: {why}" for label, why in told.not_compared]
    if told.differences:
        lines.append("What differs besides:")
        lines += [f"  {what}: {old} → {new}" for what, old, new in _few(told)]
        hidden = len(told.differences) - _MOST_DIFFERENCES
        if hidden > 0:
            lines.append(f"  … and {hidden} more; --json lists all")
    else:
        lines.append("Nothing that was recorded differs in platform, environment or protocol.")
    lines += [f"Note: {warning}" for warning in told.warnings]
    lines += [f"FAIL  {sentence(pair)}" for pair in failed]
    return "\n".join(lines) + "\n"


def as_github(told: Versus, failed: Sequence[Pair] = ()) -> str:
    """Write Markdown for a job summary."""
    lines = [
        f"### {told.after.name} against {told.before.name}",
        "",
        f"{METRICS[told.metric].title}; a ratio above 1 is better.",
        "",
        "| | cell | ratio | interval | trials | answer |",
        "|---|---|---:|---|---:|---|",
    ]
    for pair in told.pairs:
        change = pair.change
        mark = "❌" if pair in failed else ""
        ratio = numbers.ratio(change.ratio, pair.interval)
        inside = numbers.ratio_span(pair.interval, change.ratio)
        cells = (mark, pair.label, f"{ratio} ×", inside, f"{change.before}, {change.after}")
        lines.append(f"| {' | '.join(_cell(text) for text in cells)} | {change.answer} |")
    if told.not_compared:
        lines += ["", "Not compared:", ""]
        lines += [f"- {label}: {why}" for label, why in told.not_compared]
    if told.differences:
        lines += ["", "What differs besides:", "", "| | before | after |", "|---|---|---|"]
        lines += [f"| {' | '.join(_cell(text) for text in row)} |" for row in _few(told)]
    lines += ["", *(f"> {warning}" for warning in told.warnings)]
    return "\n".join(lines) + "\n"


def as_junit(told: Versus, failed: Sequence[Pair] = ()) -> str:
    """Write one test case per cell; one fails if the gate says so, and skips if not comparable."""
    root = Element("testsuites", name=f"{told.after.name} against {told.before.name}")
    suite = SubElement(root, "testsuite", name="compare")
    for pair in told.pairs:
        case = SubElement(suite, "testcase", classname=pair.workload, name=pair.label)
        if pair in failed:
            SubElement(case, "failure", message=sentence(pair))
        elif not pair.is_judged:
            SubElement(case, "skipped", message=pair.change.why)
        SubElement(case, "system-out").text = sentence(pair)
    for label, why in told.not_compared:
        case = SubElement(suite, "testcase", classname="not compared", name=label)
        SubElement(case, "skipped", message=why)
    suite.set("tests", str(len(suite)))
    suite.set("failures", str(len(suite.findall("testcase/failure"))))
    suite.set("skipped", str(len(suite.findall("testcase/skipped"))))
    indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root, encoding="unicode") + "\n"


def compared(told: Versus, failed: Sequence[Pair] = ()) -> ComparedRuns:
    """Give everything as values."""
    return ComparedRuns(
        metric=told.metric,
        before=told.before.name,
        after=told.after.name,
        cells=tuple(
            ComparedCell(
                key=pair.key,
                label=pair.label,
                ratio=pair.change.ratio,
                low=pair.change.low,
                high=pair.change.high,
                level=pair.change.level,
                p=pair.change.p,
                answer=pair.change.answer,
                why=pair.change.why,
                trials=(pair.change.before, pair.change.after),
                failed=pair in failed,
                is_bound=pair.change.is_bound,
                sessions=pair.scatter.sessions if pair.scatter else None,
                sessions_differ=pair.scatter.reach if pair.scatter else None,
            )
            for pair in told.pairs
        ),
        not_compared=tuple(Hole(label, why) for label, why in told.not_compared),
        differences=tuple(Difference(*one) for one in told.differences),
        warnings=tuple(told.warnings),
    )


def _few(told: Versus) -> Sequence[tuple[str, str, str]]:
    return told.differences[:_MOST_DIFFERENCES]


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
