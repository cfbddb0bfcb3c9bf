"""Describe a step that does no work, which leaves what the harness itself costs."""

from __future__ import annotations

from harness.worker.network.workload import Nothing

WORKLOAD = Nothing(name="nothing", title="No work at all: the harness's own floor")
