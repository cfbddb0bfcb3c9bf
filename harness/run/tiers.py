"""This file finds the storage tiers that a study names: each is a folder of the platform's.

Data sets lie in ``bakeoff-data/`` on their tier. Where nobody names a tier, data lie on the one
whose role it is; where there is none, in a folder of their own beside the environments.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.errors import Unavailable, nearest
from harness.node.input.dataset import name_of
from harness.run import shelf
from harness.spec.cell import Cell
from harness.spec.plan import Plan
from harness.spec.platform import Platform

DATA = "bakeoff-data"


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
    return shelf.home()


def data_folder(platform: Platform, tier: str | None) -> Path:
    """Give the folder that data sets lie in, on a tier."""
    return tier_folder(platform, tier, "data") / DATA


def data_set(platform: Platform, cell: Cell) -> Path | None:
    """Give the folder of what a cell reads; None if it reads nothing."""
    if cell.content is None:
        return None
    factors: Mapping[str, Any] = cell.factors
    folder = data_folder(platform, factors.get("tier"))
    name = name_of(cell.content, str(factors["format"]), int(factors["samples"]), 1)
    return folder / name


def data_sets(plan: Plan) -> list[tuple[Cell, Path]]:
    """Give each data set that a plan reads, with the first cell that reads it."""
    found: dict[Path, Cell] = {}
    for cell in plan.cells:
        folder = data_set(plan.platform, cell)
        if folder is not None:
            found.setdefault(folder, cell)
    return [(cell, folder) for folder, cell in found.items()]


def create_command(plan: Plan, cell: Cell) -> str:
    """Give the command that makes what a cell reads."""
    tier, platform = cell.factors.get("tier"), plan.platform.name
    where = f" --at {tier}" if tier is not None else ""
    machine = f" --platform {platform}" if platform != "local" else ""
    return (
        f"bakeoff data create {cell.content} --format {cell.factors['format']} "
        f"--samples {cell.factors['samples']}{where}{machine}"
    )
