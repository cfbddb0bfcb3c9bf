"""Divide the cells of a block into groups whose trials live at the same time.

A group is of one task, for only its cells are compared. Where they do not all fit into memory, or
are many, they form several groups, and the reference is in each where it is known: a cell is
compared with the trial of the reference that it lived with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil

MOST_TOGETHER = 8
"""Trials of a group: a round of more would put minutes between a cell and the reference."""


@dataclass(frozen=True)
class Group:
    """Cells whose trials live at the same time, in the order in which they start."""

    keys: tuple[str, ...]
    reference: str | None = None


@dataclass(frozen=True)
class Division:
    """The groups of a task, and the cells that are too large to live beside another one."""

    groups: tuple[Group, ...] = ()
    too_large: tuple[str, ...] = ()


def divide(
    due: Sequence[str],
    everybody: Sequence[str],
    *,
    reference: str | None,
    needs: Mapping[str, int],
    room: int | None,
) -> Division:
    """Divide the cells of a task that are due in a block; ``everybody`` are all that take turns.

    A reference that is due again takes all others of the task along, for their partner is lost. A
    reference that is not due is measured once more in each group: cells that are made again have
    nobody else to be compared with. What is in no group is due all the same.
    """
    if not due or len(everybody) < 2:
        return Division()
    if reference not in everybody:
        reference = None
    wanted = everybody if reference in due else due
    others = [key for key in wanted if key != reference]
    if room is None:
        room = sum(needs.values())
    room -= needs[reference] if reference is not None else 0
    fit = [key for key in others if needs[key] <= room]
    most = MOST_TOGETHER - (reference is not None)
    most = ceil(len(fit) / max(1, ceil(len(fit) / most)))  # or one of nine would be left alone
    groups: list[list[str]] = []
    free = 0
    for key in fit:
        if not groups or len(groups[-1]) >= most or needs[key] > free:
            groups.append([])
            free = room
        groups[-1].append(key)
        free -= needs[key]
    whole = [_group(keys, reference, everybody) for keys in groups]
    is_divided = len(fit) < len(others) or len(groups) > 1  # else others are missing, not room
    kept = tuple(group for group in whole if len(group.keys) > 1)
    placed = {key for group in kept for key in group.keys}
    left = tuple(key for key in due if key not in placed)
    return Division(kept, left if is_divided else ())


def _group(keys: Sequence[str], reference: str | None, order: Sequence[str]) -> Group:
    return Group(tuple(key for key in order if key in keys or key == reference), reference)
