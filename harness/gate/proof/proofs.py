"""Decide which trials are examined, hand them what they start from, and judge what they made.

What a cell's trials start from is kept in the user's cache, by everything that decides it. The
first trial of a cell in a session is examined; each further one too, where that took at most a
small share of the trial, else a third of them, which the seed chooses.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from harness import plugins
from harness.environments import cache
from harness.errors import DamagedFile, RunError
from harness.gate import reference, tolerances
from harness.gate.processes import separate_process
from harness.gate.proof import (
    expected_updates,
    given_back,
    judging,
    request,
    start,
    starting_moments,
)
from harness.gate.proof.judging import Proved
from harness.gate.proof.untrained import Untrained
from harness.gate.tensors import draws, folders
from harness.plan.cell import Cell
from harness.plan.duration import UPDATES, is_too_long, pictures_of, start_s
from harness.plan.norm_parts import norm_parts_of
from harness.store import typed
from harness.store.bounded_cache import Cache
from harness.store.files import explained
from harness.store.layout import TrialPaths
from harness.study.framework import ALONE, framework_info
from harness.units import duration
from harness.worker.network.precisions import precision_of
from harness.worker.network.workload import Training

MOST_BYTES = 4 << 30
_SHARE = 0.15
"""Of a trial's time: a proof that takes no more is made in each."""
_EVERY = 3
_MOMENT_S = 2.0
PRECISIONS = ("fp32", "tf32", "bf16", "bf16-pure")


@dataclass(frozen=True)
class Asked:
    """One trial's proof: what it is given, and whether it is examined."""

    given: Path
    why_not: str
    """Why it is not examined; empty: it is."""
    block: int = 0


@dataclass
class Proofs:
    """The proofs of one session."""

    seed: int
    say: Callable[[str], None] = lambda _: None
    """Hears what takes more than a moment."""
    _kept: Cache | None = None
    _shares: dict[str, float] = field(default_factory=dict)
    """By cell, what part of its first trial the proof took."""
    _examined: set[tuple[str, int]] = field(default_factory=set)
    """Cells with the blocks whose trials were examined: a re-run of one says nothing new."""

    def asked(self, cell: Cell, block: int) -> Asked | None:
        """Say what a trial is given; None where its activity has no doors for it."""
        workload = plugins.workload(cell.workload, cell.factors)
        if not framework_info(cell.adapter).proves or not isinstance(workload, Training):
            return None
        if cell.factors["precision"] not in PRECISIONS:
            return None
        if cell.strategy == ALONE and cell.scale.devices > 1:
            return None
        given = self._given(workload, cell)
        why_not = folders.open_folder(given).about.get("why") or self._skips(cell, block)
        return Asked(given, why_not, block)

    def judge(self, cell: Cell, asked: Asked, trial: TrialPaths, trial_s: float) -> str:
        """Compare what a trial made with float64; raise ``Untrained`` if it is off, or damaged.

        ``trial_s`` is how long the trial took.
        """
        workload = plugins.workload(cell.workload, cell.factors)
        assert isinstance(workload, Training)
        began = time.monotonic()
        if not trial.files.exists(trial.proved):  # code that an earlier version laid out
            return "not examined: the code that ran has no doors for it"
        given = folders.open_folder(asked.given)
        declared = [one.tensors for one in framework_info(cell.adapter).differs]
        try:
            answer, *further = [
                folders.open_made(
                    trial.files, trial.proved / str(number) if number else trial.proved
                )
                for number in range(cell.scale.devices)
            ]
            with typed.damage(trial.proved):
                made_s = typed.read(float, answer.about.get("seconds"), "about.seconds")
            precision = str(cell.factors["precision"])
            called = "rank" if cell.scale.devices_per_rank == 1 else "device"
            found = judging.judge(
                workload, precision, given, answer, declared, further=further, called=called
            )
        except DamagedFile as fault:
            raise Untrained(f"what it gave to be examined cannot be read: {fault}") from None
        spent_s = made_s + time.monotonic() - began
        self._examined.add((cell.key, asked.block))
        self._shares[cell.key] = spent_s / max(trial_s, 1e-9)
        return in_words(found, cell)

    def release(self) -> None:
        """Let other processes remove what this session used."""
        if self._kept is not None:
            self._kept.release_all()

    def _skips(self, cell: Cell, block: int) -> str:
        if cell.scale.devices > 1 and cell.factors["communicate"] is False:
            return "its ranks exchange no gradients"
        if (cell.key, block) in self._examined:
            return "the first trial of its block was"
        if self._shares.get(cell.key, 0.0) <= _SHARE:
            return ""
        drawn = hashlib.sha256(f"{self.seed}/{cell.key}/{block}".encode()).digest()[0]
        return "" if drawn % _EVERY == 0 else "other trials of its cell are"

    def _given(self, workload: Training, cell: Cell) -> Path:
        if self._kept is None:
            folder = cache.home() / "gate" / "proofs"
            with explained(folder):
                folder.mkdir(parents=True, exist_ok=True)
            self._kept = Cache(folder, MOST_BYTES, self.say)
        batch, parts = cell.scale.batch_per_step, norm_parts_of(workload, cell)
        shares = cell.scale.devices
        is_refused = is_too_long(workload, batch, parts)
        filled = [UPDATES, pictures_of(workload, batch, parts), is_refused]
        code = [_code_digest(), np.__version__]
        held = precision_of(cell.factors["precision"]).of_weights
        decisive = [*code, repr(workload), batch, parts, shares, *filled, self.seed, held]
        name = cache.digest(decisive)

        def make(beside: Path) -> None:
            expected_s = start_s(workload, batch, parts)
            write = partial(request.write_given, parts=parts, shares=shares, held=held)
            if expected_s <= _MOMENT_S:
                write(workload, batch, self.seed, beside)
                return
            what = f"what trials of {workload.name} at batch {batch} start from"
            self.say(f"Computing {what}, once: about {duration(expected_s)} of a free core.")
            try:  # gigabytes, which this process would keep beside the trials
                separate_process.call(None, write, workload, batch, self.seed, beside)
            except separate_process.ProcessFailed as why:
                raise RunError(f"Computing {what} failed: {why}") from None

        return self._kept.take(f"{workload.name}-{batch}-{name}", make)


def in_words(found: Proved, cell: Cell) -> str:
    """Say what was proved."""
    how = f"{found.updates} updates as timed"
    if cell.scale.ranks > 1:
        how += f", of {cell.scale.ranks} ranks,"
    elif cell.scale.devices > 1:
        how += f", of {cell.scale.devices} devices,"
    if found.is_exact:
        return f"{how} equal float64's within {found.error:.0e}"
    return f"{how} point where float64's do (cosine at least {1 - found.error:.3f})"


def _code_digest() -> str:
    """Digest the code that decides what trials start from, not what judges them afterwards."""
    whole = hashlib.sha256(reference.code_digest().encode())
    for module in (
        draws,
        expected_updates,
        given_back,
        request,
        start,
        starting_moments,
        tolerances,
    ):
        whole.update(Path(module.__file__ or "").read_bytes())
    return whole.hexdigest()
