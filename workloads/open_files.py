"""Describe opening many small files: what their names cost, not their bytes."""

from __future__ import annotations

from harness.worker.network.workload import Opening

WORKLOAD = Opening(
    name="open-files",
    title="Metadata: open, stat and close files of 3 kB",
    content="tiny-pictures",
    samples=4096,
)
