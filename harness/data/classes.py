"""This file tells what class each of somebody's own pictures has: the folder that it lies in.

As in torchvision's ImageFolder a class is a folder right under the root, whatever lies between it
and the picture, and classes are numbered in the order of their names.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath

_FEWEST = 2


@dataclass(frozen=True)
class Classes:
    """The classes of some pictures, and which of them each one has."""

    names: tuple[str, ...]
    of: array[int]


def by_folder(pictures: Sequence[str]) -> Classes | None:
    """Read classes off the pictures' names, relative to the root; None where there are none."""
    folders = [PurePath(name).parts[0] for name in pictures if len(PurePath(name).parts) > 1]
    names = tuple(sorted(set(folders)))
    if len(folders) < len(pictures) or len(names) < _FEWEST:
        return None  # a picture beside the folders belongs to none; one class is nothing to tell
    numbers = {name: number for number, name in enumerate(names)}
    return Classes(names, array("q", (numbers[folder] for folder in folders)))
