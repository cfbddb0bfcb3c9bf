"""This file makes the gate's reference once per workload and keeps it: torch, float64, on the CPU.

A reference is two tensor folders, ``given`` and ``made``, named by a hash of everything that
decides what is in them. One takes gigabytes, so what is kept has a bound (``cache.py``).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.data import draws, folders, reduced, requests, rounded
from harness.errors import BakeoffError, Unavailable
from harness.node.tensors import Folder
from harness.node.workload import Training
from harness.run import environment, shelf
from harness.run.cache import Cache
from harness.run.environment import Interpreter
from harness.run.examiner import door
from harness.run.outcome import OK, TIMED_OUT, Outcome
from harness.run.payload import Closures, Payload
from harness.spec.cell import Cell
from harness.spec.framework import framework_info
from harness.spec.platform import Platform

FRAMEWORK = "torch"

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
        self, platform: Platform, payload: Payload, kept: Cache, go: Callable[..., Outcome]
    ) -> None:
        self._platform = platform
        self._closures = Closures(payload)
        self._kept = kept
        self._go = go
        self._interpreter: Interpreter | None = None
        self._current = ""

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
        key = self.key(cell)
        if (
            key != self._current
        ):  # another workload: what it needs may be all that there is room for
            self._kept.let_go()
            self._current = key
        place = self._kept.take(
            f"{cell.workload}-{kind}-{key}", lambda beside: self._make(cell, write, beside)
        )
        return Reference(*(folders.open_folder(place / name) for name in ("given", "made")))

    def _make(self, cell: Cell, write: Callable[[Path], None], place: Path) -> None:
        write(place / "given")
        paths = {name: place / name for name in ("given", "made")}
        outcome = self._go(door(_in_torch(cell), "examine", _FACTORS, paths), self._torch())
        if outcome.outcome == TIMED_OUT:  # its reason names a trial's limit, which is another
            raise NoReference("torch had not ended the reference in the gate's time")
        if outcome.outcome != OK:
            raise NoReference(f"the reference failed: {outcome.reason}")

    def _torch(self) -> Interpreter:
        if self._interpreter is None:
            try:
                self._interpreter = environment.resolve(FRAMEWORK, self._platform)
            except Unavailable as problem:
                raise NoReference(f"the reference is torch, and {_inline(problem)}") from problem
        return self._interpreter


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
