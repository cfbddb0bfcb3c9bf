"""Choose the points of a study that become cells; the others are left out with a reason."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from harness.errors import UsageError, nearest
from harness.plan.resolve import Resolved, Resolver
from harness.study.factors import FACTORS
from harness.study.matrix import points
from harness.study.study import Study
from harness.toml.document import Place
from harness.toml.values import Value
from harness.units import listed

_NAMED = 5
_ORDER = {name: number for number, name in enumerate(FACTORS)}
_NEEDED = ("workload", "framework")


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


def place_of_fault(study: Study, resolver: Resolver, fallen: Resolved) -> Place | None:
    """Give the place in a study's file of the value that a cell fell for; None if none did it.

    It is the factor without which the same cell would not have fallen for the same reason; those
    that say most about little, such as a format, are tried before those that they depend on.
    """
    everything = fallen.everything()
    places = dict(_stated(study, fallen))
    asked = {name: everything[name] for name in (*_NEEDED, *places)}
    for name in sorted(places, key=lambda one: _ORDER.get(one, len(_ORDER)), reverse=True):
        others = {one: value for one, value in asked.items() if one != name}
        if resolver.resolve(others).why != fallen.why:
            return places[name]
    return None


def _stated(study: Study, fallen: Resolved) -> Iterator[tuple[str, Place]]:
    """Name the factors and options that a study states for a cell, with their places."""
    everything = fallen.everything()
    matrix = study.matrix
    tables: list[tuple[Place, Mapping[str, tuple[Value, ...]]]] = [(("matrix",), matrix.axes)]
    tables += [(("zip", number), one) for number, one in enumerate(matrix.zips)]
    for number, one in enumerate(matrix.includes):
        tables.append((("include", number), {name: (value,) for name, value in one.items()}))
    for at, table in tables:
        own = {name: values for name, values in table.items() if name in everything}
        if all(everything[name] in values for name, values in own.items()):
            for name in own:
                if name not in _NEEDED:
                    yield name, (*at, *name.split("."))


def grouped(holes: Iterable[Hole]) -> dict[str, tuple[str, ...]]:
    """Give the labels of the holes by their reason, the commonest reason first."""
    found: dict[str, list[str]] = {}
    for hole in holes:
        found.setdefault(hole.why, []).append(hole.label)
    common = sorted(found.items(), key=lambda one: -len(one[1]))
    return {why: tuple(labels) for why, labels in common}


class NothingLeft(UsageError):
    """Refuse a study none of whose cells can run; keep them with their reasons.

    ``blamed`` says of reasons where in the study the value stands that they are about.
    """

    def __init__(
        self,
        study: Study,
        holes: Sequence[Hole],
        selectable: Mapping[str, Set[str]],
        blamed: Mapping[str, str],
    ) -> None:
        self.holes = holes
        if holes:
            lines = [f"{study.path}: nothing is left to run. Every cell fell:"]
        else:
            narrowed = " and ".join(f"--only {text}" for text, _ in study.only)
            lines = [f"{study.path}: no cell of this study matches {narrowed}."]
            for name, values in selectable.items():
                each = [one.wanted[name] for _, one in study.only if name in one.wanted]
                asked = list(dict.fromkeys(str(value) for some in each for value in some))
                hint = next((_meant(name, one, values) for one in sorted({*asked} - values)), "")
                if not hint and not set.intersection(*map(set, each)):
                    hint = f" --only {name}={','.join(asked)} keeps any of these."
                lines.append(f"    Its {name}: {', '.join(sorted(values))}.{hint}")
        for why, labels in grouped(holes).items():
            where = f"{blamed[why]}: " if why in blamed else ""
            lines.append(f"    {where}{why}: {listed(labels, _NAMED)}")
        super().__init__("\n".join(lines))


def _meant(name: str, asked: str, values: Set[str]) -> str:
    """Suggest the study's value that was meant, or else how to ask for one that it has not."""
    allowed = tuple(map(str, FACTORS[name].allowed)) if name in FACTORS else ()
    elsewhere = f" --set matrix.{name}=… asks for others."
    if asked in allowed:
        return elsewhere
    if hint := nearest(asked, values):
        return hint
    hint = nearest(asked, allowed)
    return hint and hint + elsewhere
