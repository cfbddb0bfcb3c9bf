"""The cells that a plan leaves out: why each fell, and what to say if all did."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass

from harness.errors import UsageError, nearest
from harness.study.study import Study
from harness.toml.values import Value

_NAMED = 5


@dataclass(frozen=True)
class Hole:
    """A cell that was asked for and left out."""

    label: str
    factors: Mapping[str, Value]
    """With workload and framework."""
    why: str


def grouped(holes: Iterable[Hole]) -> dict[str, tuple[str, ...]]:
    """Give the labels of the holes by their reason, the commonest reason first."""
    found: dict[str, list[str]] = {}
    for hole in holes:
        found.setdefault(hole.why, []).append(hole.label)
    common = sorted(found.items(), key=lambda one: -len(one[1]))
    return {why: tuple(labels) for why, labels in common}


class NothingLeft(UsageError):
    """Refuse a study none of whose cells can run; keep them with their reasons."""

    def __init__(self, study: Study, holes: Sequence[Hole], there: Mapping[str, Set[str]]) -> None:
        self.holes = holes
        if holes:
            lines = [f"{study.path}: nothing is left to run. Every cell fell:"]
        else:
            narrowed = " and ".join(f"--only {text}" for text, _ in study.only)
            lines = [f"{study.path}: no cell of this study matches {narrowed}."]
            for name, values in there.items():
                asked = {str(value) for _, one in study.only for value in one.wanted.get(name, ())}
                hint = next((nearest(one, values) for one in asked - values), "")
                lines.append(f"    Its {name}: {', '.join(sorted(values))}.{hint}")
        for why, labels in grouped(holes).items():
            more = f" and {len(labels) - _NAMED} more" if len(labels) > _NAMED else ""
            lines.append(f"    {why}: {', '.join(labels[:_NAMED])}{more}")
        super().__init__("\n".join(lines))
