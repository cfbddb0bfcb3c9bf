"""Train tinycnn by Adam. The tests put it into a payload as a workload of its own."""

from __future__ import annotations

from dataclasses import replace

from harness.worker.network.workload import Adam
from workloads import tinycnn

WORKLOAD = replace(tinycnn.WORKLOAD, name="adam", optimiser=Adam(rate=0.001))
