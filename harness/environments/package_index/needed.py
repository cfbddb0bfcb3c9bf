"""Follow what packages need, for a Python that pip does not run in.

No version is searched for: what is not pinned is the newest that pip finds, and where two packages
contradict each other that is told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from packaging.requirements import InvalidRequirement, Requirement

from harness.environments.lock import normal
from harness.environments.package_index.pip import Item
from harness.errors import Unavailable


@dataclass(frozen=True)
class Needed:
    """What was chosen, and what is needed but was to be left out."""

    items: tuple[Item, ...]
    left_out: tuple[str, ...] = ()
    """Requirements that whoever installs has to meet otherwise."""

    @property
    def names_left_out(self) -> tuple[str, ...]:
        """The packages alone."""
        return tuple(dict.fromkeys(Requirement(one).name for one in self.left_out))


Ask = Callable[[Sequence[str]], list[Item]]
"""Has pip choose a file for each requirement, and nothing for what those need."""


def with_what_they_need(
    ask: Ask,
    requirements: Iterable[str],
    markers: Mapping[str, str],
    without: frozenset[str] = frozenset(),
) -> Needed:
    """Choose requirements and all that they need where these markers hold.

    Nothing is chosen for the names in ``without``, nor followed from them.
    """
    left_out: set[str] = set()
    chosen: dict[str, Item] = {}
    followed: set[tuple[str, str]] = set()
    wanted: list[tuple[str, Requirement]] = []
    waiting = [("it", _read("what was asked for", text)) for text in requirements]
    while waiting:
        left_out |= {_plain(one) for _, one in waiting if normal(one.name) in without}
        waiting = [(by, one) for by, one in waiting if normal(one.name) not in without]
        wanted += waiting
        new = {normal(one.name) for _, one in waiting} - chosen.keys()
        if new:
            chosen |= {normal(one.name): one for one in ask(_together(wanted, new))}
        missing = sorted(new - chosen.keys())
        if missing:
            raise Unavailable(f"pip chose nothing for {', '.join(missing)}.")
        asked = {(normal(one.name), extra) for _, one in waiting for extra in ("", *one.extras)}
        waiting = [
            (chosen[name].name, need)
            for name, extra in sorted(asked - followed)
            for need in _needs(chosen[name], extra, markers)
        ]
        followed |= asked
    _refuse_contradictions(wanted, chosen)
    return Needed(tuple(chosen.values()), tuple(sorted(left_out)))


def _plain(need: Requirement) -> str:
    return f"{need.name}{need.specifier}"


def _needs(item: Item, extra: str, markers: Mapping[str, str]) -> Iterator[Requirement]:
    for text in item.requires:
        need = _read(item.name, text)
        if need.marker is None:
            if not extra:
                yield need
        elif need.marker.evaluate({**markers, "extra": extra}):
            yield need


def _read(by: str, text: str) -> Requirement:
    try:
        need = Requirement(text)
    except InvalidRequirement as problem:
        raise Unavailable(f"{by} needs {text!r}, which cannot be read: {problem}.") from None
    if need.url is not None:
        raise Unavailable(f"{by} needs {text!r}: a file by its address, which no lock can pin.")
    return need


def _together(wanted: Iterable[tuple[str, Requirement]], names: Iterable[str]) -> list[str]:
    """Write one requirement a name, of all that was said of it so far."""
    ranges = {
        name: ",".join(
            sorted({str(one.specifier) for _, one in wanted if normal(one.name) == name} - {""})
        )
        for name in names
    }
    return [f"{name}{ranges[name]}" for name in sorted(ranges)]


def _refuse_contradictions(
    wanted: Iterable[tuple[str, Requirement]], chosen: Mapping[str, Item]
) -> None:
    faults = [
        f"{by} needs {one}, and {chosen[normal(one.name)].version} was chosen"
        for by, one in wanted
        if not one.specifier.contains(chosen[normal(one.name)].version, prereleases=True)
    ]
    if faults:
        lines = "\n    ".join(dict.fromkeys(faults))
        raise Unavailable(
            f"These packages do not fit together:\n    {lines}\n"
            "    Pin one of them in the environment's lock: docs/frameworks.md."
        )
