"""This file decides which cells are still to be probed: watched once, untimed, caches filled."""

from __future__ import annotations

from harness.run.outcome import CANCELLED, NODE_LOST, OK
from harness.spec.cell import Cell
from harness.spec.framework import framework_info
from harness.store import run as store
from harness.store.files import read_json
from harness.store.layout import RunPaths


def is_due(paths: RunPaths, cell: Cell) -> bool:
    """Tell whether a cell is to be probed now; a probe that was cut off is set aside for that."""
    if not framework_info(cell.adapter).has_probe or cell.factors["message_bytes"] is not None:
        return False  # an exchange of messages computes nothing
    cold, probe = paths.cold(cell.key).outcome, paths.probe(cell.key)
    if cold.is_file() and read_json(cold)["outcome"] != OK:
        return False
    if not probe.outcome.is_file():
        return True
    if read_json(probe.outcome)["outcome"] not in (CANCELLED, NODE_LOST):
        return False
    store.set_aside(paths, probe.root)
    return True
