"""Choose the points of a study that become cells; the others are left out with a reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass

from harness.errors import UsageError, nearest
from harness.plan.resolve import Resolved, Resolver
from harness.study.matrix import points
from harness.study.study import Study
from harness.toml.values import Value
from harness.units import listed

_NAMED = 5


@dataclass(frozen=True)
class Hole:
    """A cell that was asked for and left out."""

    label: str
    factors: Mapping[str, Value]
    """With workload and framework."""
    why: str


@dataclass(frozen=True)
class Choice:
    """The points of a study that can run, and those left out."""

    runnable: tuple[Resolved, ...]
    left_out: tuple[tuple[Resolved, str], ...]
    """With the reason."""
    named: Set[str]
    """Factors and options that the matrix gives values to."""
    matched: tuple[int, ...]
    """How many points each exclusion matched."""
    selectable: Mapping[str, Set[str]]
    """The values that the study offers for each name that --only tests."""


def choose(study: Study, resolver: Resolver) -> Choice:
    """Resolve every point of a study, and say which can run and why the others cannot.

    What --only does not select is neither run nor left out. An exclusion's reason goes before the
    resolver's, for a person stated it, and the last exclusion that matches counts; includes are
    never excluded. Points that resolve to one key are one cell, which runs if any of them can.
    """
    runnable: dict[str, Resolved] = {}
    left_out: dict[str, tuple[Resolved, str]] = {}
    named, matched = set[str](), [0] * len(study.matrix.excludes)
    selectable: dict[str, set[str]] = {name: set() for _, one in study.only for name in one.wanted}
    for point, is_included in points(study.matrix):
        resolved = resolver.resolve(point)
        everything = resolved.everything()
        for name, values in selectable.items():
            values.add(str(everything.get(name)))
        if not all(selection.takes(everything) for _, selection in study.only):
            continue
        named.update(point)
        why = resolved.why
        for number, exclusion in enumerate(() if is_included else study.matrix.excludes):
            if exclusion.selection.takes(everything):
                matched[number] += 1
                why = exclusion.why
        if why is None:
            runnable.setdefault(resolved.key, resolved)
        else:
            left_out.setdefault(resolved.key, (resolved, why))
    return Choice(
        runnable=tuple(runnable.values()),
        left_out=tuple(one for key, one in left_out.items() if key not in runnable),
        named=named,
        matched=tuple(matched),
        selectable=selectable,
    )


def grouped(holes: Iterable[Hole]) -> dict[str, tuple[str, ...]]:
    """Give the labels of the holes by their reason, the commonest reason first."""
    found: dict[str, list[str]] = {}
    for hole in holes:
        found.setdefault(hole.why, []).append(hole.label)
    common = sorted(found.items(), key=lambda one: -len(one[1]))
    return {why: tuple(labels) for why, labels in common}


class NothingLeft(UsageError):
    """Refuse a study none of whose cells can run; keep them with their reasons."""

    def __init__(
        self, study: Study, holes: Sequence[Hole], selectable: Mapping[str, Set[str]]
    ) -> None:
        self.holes = holes
        if holes:
            lines = [f"{study.path}: nothing is left to run. Every cell fell:"]
        else:
            narrowed = " and ".join(f"--only {text}" for text, _ in study.only)
            lines = [f"{study.path}: no cell of this study matches {narrowed}."]
            for name, values in selectable.items():
                asked = {str(value) for _, one in study.only for value in one.wanted.get(name, ())}
                hint = next((nearest(one, values) for one in asked - values), "")
                lines.append(f"    Its {name}: {', '.join(sorted(values))}.{hint}")
        for why, labels in grouped(holes).items():
            lines.append(f"    {why}: {listed(labels, _NAMED)}")
        super().__init__("\n".join(lines))
