"""Find the storage tiers that a study names: each is a folder of the platform's.

Data sets lie in ``bakeoff-data/`` on their tier. Where nobody names a tier, data lie on the one
whose role it is; where there is none, in a folder of their own beside the environments.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from harness.environments import cache
from harness.errors import Unavailable, nearest
from harness.plan.cell import Cell
from harness.plan.plan import Plan
from harness.platform.platform import Platform
from harness.run.storage import lustre
from harness.worker.checkpoints import request
from harness.worker.input.dataset import name_of

DATA = "bakeoff-data"
CHECKPOINTS = "bakeoff-checkpoints"


def tier_folder(platform: Platform, tier: str | None, role: str) -> Path:
    """Give the folder of a tier; without a name, of the first that has the role."""
    if tier is not None:
        if tier not in platform.storage:
            known = ", ".join(platform.storage) or "none"
            hint = nearest(tier, platform.storage)
            raise Unavailable(
                f"{platform.name} has no storage tier '{tier}'.{hint} Known: {known}. A profile "
                f'names one with [storage.{tier}] path = "/…".'
            )
        return Path(platform.storage[tier].path)
    for one in platform.storage.values():
        if role in one.roles:
            return Path(one.path)
    return cache.home()


def data_folder(platform: Platform, tier: str | None) -> Path:
    """Give the folder that data sets lie in, on a tier."""
    return tier_folder(platform, tier, "data") / DATA


def own_data() -> Path:
    """Give the folder that holds what describes a user's own files."""
    return cache.home() / "data"


def data_set(platform: Platform, cell: Cell) -> Path | None:
    """Give the folder of what a cell reads; None if it reads nothing."""
    if cell.content is None:
        return None
    if cell.own_data is not None:
        return Path(cell.own_data)
    factors = cell.factors
    folder = data_folder(platform, factors.get("tier"))
    name = name_of(cell.content, factors["format"], factors["samples"], 1)
    return folder / (name + lustre.of(factors).suffix)


def data_sets(plan: Plan) -> list[tuple[Cell, Path]]:
    """Give each data set that a plan reads, with the first cell that reads it."""
    found: dict[Path, Cell] = {}
    for cell in plan.cells:
        folder = data_set(plan.platform, cell)
        if folder is not None:
            found.setdefault(folder, cell)
    return [(cell, folder) for folder, cell in found.items()]


def checkpoint_folders(platform: Platform, cell: Cell, trial: str) -> dict[str, Path]:
    """Give the folders that a trial's checkpoints lie in, by the names of a job's paths."""
    factors = cell.factors
    if factors.get("checkpoint_every") is None:
        return {}
    to = tier_folder(platform, factors.get("checkpoint_to"), "checkpoint")
    folders = {request.TO: to / CHECKPOINTS / trial}
    through = factors.get("checkpoint_through")
    if through is not None:
        fast = tier_folder(platform, through, "fast")
        folders[request.THROUGH] = fast / CHECKPOINTS / trial
    return folders


def make_room(platform: Platform, cell: Cell, trial: str) -> None:
    """Make a trial's folders on the tiers that this host reaches: containers need them to exist."""
    for folder in checkpoint_folders(platform, cell, trial).values():
        tier = next(one for one in folder.parents if one.name == CHECKPOINTS).parent
        if tier.is_dir():
            lustre.lay(folder, lustre.of(cell.factors))


def remove_checkpoints(platform: Platform, cell: Cell, trial: str) -> None:
    """Remove checkpoints that killed ranks left on the tiers that this host reaches."""
    for folder in checkpoint_folders(platform, cell, trial).values():
        shutil.rmtree(folder, ignore_errors=True)
        for parent in folder.parents:
            try:
                parent.rmdir()
            except OSError:  # another trial's are there too, or nothing ever was
                break
            if parent.name == CHECKPOINTS:
                break


def create_command(plan: Plan, cell: Cell) -> str:
    """Give the command that makes what a cell reads."""
    tier, platform = cell.factors.get("tier"), plan.platform.name
    where = f" --at {tier}" if tier is not None else ""
    where += "".join(f" {word}" for word in lustre.of(cell.factors).options)
    machine = f" --platform {platform}" if platform != "local" else ""
    return (
        f"bakeoff data create {cell.content} --format {cell.factors['format']} "
        f"--samples {cell.factors['samples']}{where}{machine}"
    )
