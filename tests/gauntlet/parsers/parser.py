"""What a target is, and how it comes by its valid examples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.errors import BakeoffError
from harness.store.layout import RunPaths
from harness.store.record_readers.run_reader import read_run
from harness.store.record_readers.trial_reader import read_trials
from tests.gauntlet import small_run
from tests.gauntlet.command import run

ROOT = Path(__file__).resolve().parents[3]

Examples = Callable[[Path], Sequence[bytes]]
Parse = Callable[[bytes, Path], object]


@dataclass(frozen=True)
class Parser:
    """One parser: what it reads, and what it may refuse damaged input with."""

    name: str
    examples: Examples
    """Valid ones; takes a folder in which a small run may lie."""
    parse: Parse
    modules: tuple[str, ...]
    """Whose reading this is: files below ``harness`` and ``reports``, without their ending."""
    is_json: bool = False
    refuses: tuple[type[Exception], ...] = (BakeoffError,)
    share: float = 1.0
    """How much of the usual number of inputs it is given: less where one takes long."""


def as_text(data: bytes) -> str:
    """Give bytes as Python gives what a program printed."""
    return data.decode("utf-8", errors="surrogateescape")


def texts(*some: str) -> Examples:
    """Give these."""
    return lambda _: [one.encode() for one in some]


def contents_of(folder: str, pattern: str) -> Examples:
    """Give files of this repository."""
    return lambda _: [one.read_bytes() for one in sorted((ROOT / folder).glob(pattern))]


def laid(data: bytes, folder: Path, name: str) -> Path:
    """Write a file, and the folders above it."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def small(folder: Path) -> Path:
    """Make the small run that run files are taken from, once."""
    place = small_run.write(folder, cells=1, blocks=2)
    if not (place / "results.json").exists():
        run(*small_run.RUN, cwd=folder, told=folder / "told")
    return place


def of_run(pattern: str) -> Examples:
    """Give files of the small run."""
    return lambda folder: [one.read_bytes() for one in sorted(small(folder).glob(pattern))]


def in_run(pattern: str, read: Callable[[RunPaths], object]) -> Parse:
    """Read a run of which one file is damaged."""

    def parse(data: bytes, folder: Path) -> object:
        place = small(folder)
        damaged = sorted(place.glob(pattern))[0]
        kept = damaged.read_bytes()
        try:
            damaged.write_bytes(data)
            return read(RunPaths(place))
        finally:
            damaged.write_bytes(kept)

    return parse


def read_whole(paths: RunPaths) -> object:
    """Read everything of a run that a page needs."""
    return read_trials(read_run(paths.root))
