"""Look whether a plan's storage is there: tiers, data sets, and room for what is missing."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from harness.data import user_data
from harness.data.catalogue import CONTENTS
from harness.data.disk_space import expected_bytes, refuse_to_fill
from harness.data.make_files import writer
from harness.data.sets import DataSetSpec, is_finished
from harness.doctor.finding import DoctorFinding
from harness.environments import cache
from harness.errors import BakeoffError, Unavailable
from harness.plan.cell import Cell
from harness.plan.plan import Plan
from harness.run.preflight.wording import split
from harness.run.storage.tiers import checkpoint_folders, create_command, data_sets
from harness.units import scaled


def look(plan: Plan) -> Iterator[DoctorFinding]:
    """Look at every data set, then at every tier that checkpoints go to."""
    wanted: Counter[int] = Counter()  # bytes by file system: sets that share one add up
    try:
        for cell, folder in data_sets(plan):
            yield _own(cell, folder) if cell.own_files else _made(plan, cell, folder, wanted)
        for tier in sorted({folder.parents[1] for folder in _checkpoints(plan)}):
            absent = _unusable(tier)
            seen = absent or "ours to write to"
            yield DoctorFinding(f"checkpoints in {tier}", "fault" if absent else "fine", seen)
    except Unavailable as problem:  # a tier that the platform does not have
        yield DoctorFinding("storage", "fault", *split(problem))


def _own(cell: Cell, folder: Path) -> DoctorFinding:
    """Hold a user's own files to what was described of them."""
    check, files = f"data of {cell.own_files}", Path(str(cell.own_files))
    why = user_data.changed(folder, files) if is_finished(folder) else f"{folder} is gone"
    if why is None:
        return DoctorFinding(check, "fine", "as they were described")
    return DoctorFinding(check, "fault", why, "Name them anew with --data.")


def _made(plan: Plan, cell: Cell, folder: Path, wanted: Counter[int]) -> DoctorFinding:
    check = f"data set {folder.name}"
    if is_finished(folder):
        return DoctorFinding(check, "fine", f"whole, in {folder.parent}")
    absent = _unusable(folder.parents[1])
    if absent is not None:
        remedy = "Mend the path of the tier in the platform, or name another tier."
        return DoctorFinding(check, "fault", f"{folder.parents[1]}: {absent}", remedy)
    spec = DataSetSpec(str(cell.content), cell.factors["format"], int(cell.factors["samples"]))
    needed = expected_bytes(spec, CONTENTS[spec.content], writer(spec).HOLDS)
    disk = _existing(folder).stat().st_dev
    wanted[disk] += needed
    try:
        refuse_to_fill(folder, wanted[disk])
    except BakeoffError as problem:
        return DoctorFinding(check, "fault", *split(problem))
    seen = f"not there, or not finished; there is room for its {scaled(needed, 'B')}"
    return DoctorFinding(check, "fault", seen, create_command(plan, cell))


def _unusable(tier: Path) -> str | None:
    """Say why nothing can be written to a tier; folders of our own may have to be made yet."""
    there = _existing(tier)
    if there != tier and cache.home() not in (tier, *tier.parents):
        return "no such folder here"
    return None if os.access(there, os.W_OK) else "not ours to write to"


def _existing(folder: Path) -> Path:
    return next(one for one in (folder, *folder.parents) if one.exists())


def _checkpoints(plan: Plan) -> list[Path]:
    return [
        folder
        for cell in plan.cells
        for folder in checkpoint_folders(plan.platform, cell, "preflight").values()
    ]
