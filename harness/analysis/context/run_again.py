"""The command that measures one cell of a run once more."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import PurePath

from harness.analysis.cell_names import factor_value
from harness.store.records import RunInfo
from harness.study.factors import FACTORS
from harness.verdicts.results import CellResult

_OF_THE_RUN = ("--name", "--max-jobs", "--max-node-hours", "--spread")
"""Options whose values belong to one run, not to what it measures."""
_SWITCHES = ("--json", "--detach", "--create-environments")


def run_again(run: RunInfo) -> str:
    """Give the run's own command, to be narrowed; empty where another verb made the run."""
    command = run.provenance.get("command")
    words = [str(word) for word in command] if isinstance(command, list | tuple) else []
    if "run" not in words[1:2]:
        return ""
    return shlex.join(["bakeoff", "run", *_kept(words[2:], run)])


def only(cell: CellResult, name: str) -> str:
    """Give what ``--only`` narrows a study to, for one factor of a cell; empty for no value."""
    if name not in FACTORS:
        return ""
    value = factor_value(cell, name)
    if isinstance(value, bool):
        return f"{name}={str(value).lower()}"
    return "" if value is None else f"{name}={value}"


def _kept(words: Sequence[str], run: RunInfo) -> Iterator[str]:
    """Leave out what belongs to one run; a file elsewhere is in the run as it was read."""
    skip = False
    for word in words:
        if skip or word in _SWITCHES:
            skip = False
        elif word in _OF_THE_RUN:
            skip = True
        elif not word.startswith(tuple(f"{one}=" for one in _OF_THE_RUN)):
            is_elsewhere = word.endswith(".toml") and PurePath(word).is_absolute()
            yield f"runs/{run.name}/study.toml" if is_elsewhere else word
