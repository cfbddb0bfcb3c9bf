"""This file makes the gate's reference once per workload and keeps it: torch, float64, on the CPU.

A reference is two tensor folders, ``given`` and ``made``, named by a hash of everything that
decides what is in them. A new one removes those of its workload that nobody used for a day.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.data import draws, folders, reduced, requests, rounded
from harness.errors import BakeoffError, Unavailable
from harness.node import tensors
from harness.node.tensors import Folder
from harness.node.workload import Training
from harness.run import environment, shelf
from harness.run.environment import Interpreter
from harness.run.examiner import door
from harness.run.outcome import OK, Outcome
from harness.run.payload import Closures, Payload
from harness.spec.cell import Cell
from harness.spec.framework import framework_info
from harness.spec.platform import Platform

FRAMEWORK = "torch"

_UNUSED_S = 86_400.0

_FACTORS: Mapping[str, Any] = {
    "device": "cpu",
    "precision": "fp32",
    "compile": False,
    "layout": "channels-first",
    "threads": None,
    "onednn": None,
    "deterministic": False,
}


class NoReference(Exception):
    """Say why nothing can be compared."""


@dataclass(frozen=True)
class Reference:
    """What was asked of the reference, and what it made of it."""

    given: Folder
    made: Folder


class References:
    """The references of one payload, made when first asked for."""

    def __init__(
        self, platform: Platform, payload: Payload, folder: Path, go: Callable[..., Outcome]
    ) -> None:
        self._platform = platform
        self._closures = Closures(payload)
        self._folder = folder
        self._go = go
        self._interpreter: Interpreter | None = None
        self._found: dict[str, Reference] = {}

    def key(self, cell: Cell) -> str:
        """Digest what decides a workload's reference, without making it."""
        interpreter = self._torch()
        code = self._closures.digest(cell.workload_module, framework_info(FRAMEWORK).module)
        return shelf.digest([code, interpreter.fingerprint, code_digest()])

    def semantics(self, cell: Cell, workload: Training) -> Reference:
        """Give the reference's float64 semantics of an examined workload."""
        return self._keep(
            cell, "semantics", lambda folder: requests.write_reference(workload, folder)
        )

    def layers(self, cell: Cell, workload: Training, precision: str) -> Reference:
        """Give each layer of the reference, alone, on inputs of a precision."""
        whole = self.semantics(cell, workload)
        return self._keep(
            cell,
            f"layers-{precision}",
            lambda folder: requests.write_layers(
                workload, whole.given, whole.made, precision, folder
            ),
        )

    def _keep(self, cell: Cell, kind: str, write: Callable[[Path], None]) -> Reference:
        place = self._folder / f"{cell.workload}-{kind}-{self.key(cell)}"
        if place.name not in self._found:
            if not (place / "made" / tensors.INDEX).is_file():
                self._make(cell, kind, place, write)
            os.utime(place)
            given, made = (folders.open_folder(place / name) for name in ("given", "made"))
            self._found[place.name] = Reference(given, made)
        return self._found[place.name]

    def _make(
        self,
        cell: Cell,
        kind: str,
        place: Path,
        write: Callable[[Path], None],
    ) -> None:
        beside = place.with_name(f".{place.name}.{os.getpid()}")
        beside.mkdir(parents=True)
        try:
            write(beside / "given")
            job = door(
                _in_torch(cell), "examine", _FACTORS, {n: beside / n for n in ("given", "made")}
            )
            outcome = self._go(job, self._torch())
            if outcome.outcome != OK:
                raise NoReference(f"the reference failed: {outcome.reason}")
            forget_unused(place.parent.glob(f"{cell.workload}-{kind}-*"))
            with suppress(OSError):  # another process made the same meanwhile
                beside.rename(place)
        finally:
            shutil.rmtree(beside, ignore_errors=True)

    def _torch(self) -> Interpreter:
        if self._interpreter is None:
            try:
                self._interpreter = environment.resolve(FRAMEWORK, self._platform)
            except Unavailable as problem:
                raise NoReference(f"the reference is torch, and {_inline(problem)}") from problem
        return self._interpreter


def forget_unused(folders: Iterable[Path]) -> None:
    """Remove what nobody used for a day: outdated, or left behind by a process that was killed."""
    for folder in folders:
        with suppress(FileNotFoundError):  # another process was faster
            if time.time() - folder.stat().st_mtime > _UNUSED_S:
                shutil.rmtree(folder, ignore_errors=True)


def code_digest() -> str:
    """Digest the host's part in what a reference holds."""
    whole = hashlib.sha256()
    for module in (draws, reduced, requests, rounded):
        whole.update(Path(module.__file__ or "").read_bytes())
    return whole.hexdigest()


def _in_torch(cell: Cell) -> Cell:
    info = framework_info(FRAMEWORK)
    return Cell(
        **{
            **{name: getattr(cell, name) for name in Cell.__dataclass_fields__},
            "framework": FRAMEWORK,
            "adapter": FRAMEWORK,
            "adapter_module": info.module,
            "environment": FRAMEWORK,
            "options": {},
        }
    )


def _inline(problem: BakeoffError) -> str:
    return " ".join(str(problem).split())
