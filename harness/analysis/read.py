"""Find runs by name, and read them as results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from harness.analysis.context.absolute_paths import without_places
from harness.analysis.results import Results
from harness.errors import RunError, UsageError, nearest
from harness.store.run_directory.find_runs import (
    RUNS,
    is_run,
    newest_first,
    runs_directly_in,
    runs_in,
)

if TYPE_CHECKING:
    from harness.analysis.between_runs.run_comparison import Versus

LATEST = "latest"
"""The run under runs/ that was begun last, wherever a run is named."""
_LOOKED_AT = 200
"""So many of the runs beside two are looked at, the latest."""


def run_directories(names: Sequence[str]) -> list[Path]:
    """Turn names into run directories: a path, a name under runs/, latest, or a folder of runs."""
    found: list[Path] = []
    for name in names:
        place = next(places_of(name), None)
        if place is None and name == LATEST:
            raise RunError(
                f"{name}: there is no such run, as none lies in {RUNS}/ here. "
                "To make one: bakeoff run STUDY"
            )
        if place is None:
            there = [one.name for one in runs_directly_in(RUNS)]
            raise RunError(
                f"{name}: there is no such run, neither here nor in {RUNS}/."
                f"{nearest(Path(name).name, there)} `bakeoff list runs` names them."
            )
        if is_run(place):
            found.append(place)
            continue
        inside = sorted(filter(is_run, place.iterdir()))
        if not inside:
            raise RunError(f"{place}: neither this folder nor any in it is a run (no run.json).")
        found += inside
    return list(dict.fromkeys(found))


def places_of(name: str) -> Iterator[Path]:
    """Give the folders that a name may mean: that path, the run of that name, or the latest."""
    yield from (place for place in (Path(name), RUNS / name) if place.is_dir())
    if name == LATEST and RUNS.is_dir():
        yield from newest_first(runs_in(RUNS))[:1]


def run_directory(name: str) -> Path:
    """Turn a name into one run directory; refuse a folder that holds several."""
    found = run_directories([name])
    if len(found) > 1:
        names = ", ".join(one.name for one in found)
        raise UsageError(f"{name} holds several runs; name one of them: {names}.")
    return found[0]


def read_results(directories: Sequence[Path]) -> Results:
    """Read runs and compute their results."""
    from harness.analysis.analyse import analyse
    from harness.store.dataset import Dataset

    return analyse(Dataset(directories))


def read_comparison(
    before: Path, after: Path, metric: str = "rate", *, repeats: Sequence[Path] = ()
) -> Versus:
    """Read two runs and compare the second with the first, as that may travel.

    How far two sessions differ is learnt from ``repeats`` and from the runs beside the two.
    """
    from harness.analysis.between_runs.repeated_runs import repeated
    from harness.analysis.between_runs.run_comparison import versus
    from harness.store.dataset import Dataset

    first, second = Dataset([before]), Dataset([after])
    there = [*repeats, *_beside(before, after)]
    found = repeated(dict.fromkeys(one.resolve() for one in there), *first.runs, *second.runs)
    told: Versus = without_places(versus(first, second, metric, repeats=found))
    return told


def read_one_session(run: Path, metric: str = "rate") -> Versus:
    """Read a run with two sides, and compare the second with the first, as that may travel."""
    from harness.analysis.between_runs.one_session import in_one_session
    from harness.store.dataset import Dataset

    told: Versus = without_places(in_one_session(Dataset([run]), metric))
    return told


def _beside(*runs: Path) -> list[Path]:
    """Find the runs that lie beside some, the latest first."""
    own = {run.resolve() for run in runs}
    folders = {run.parent for run in own}
    there = newest_first(place for folder in folders for place in runs_directly_in(folder))
    return [place for place in there if place not in own][:_LOOKED_AT]
