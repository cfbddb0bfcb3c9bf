"""Start the ranks of a plain command here, as torchrun or horovodrun would."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence

from harness.launch.contract import Node
from harness.launch.rendezvous import Seat, variables
from harness.ranks.node_offer import free_ports
from harness.study.framework_variables import Variables
from tests.adapters.interpreter import ROOT

PATIENCE_S = 600


def run(command: Sequence[str], count: int, words: Variables) -> list[str]:
    """Run a command once a rank, each on its share of the cores; give what each prints.

    ``words`` are the variables by which its framework's ranks find each other.
    """
    cpus = sorted(os.sched_getaffinity(0))
    each = max(1, len(cpus) // count)
    node = Node(tuple(cpus), free_ports(count + 1, "127.0.0.1"))
    ranks = []
    for rank in range(count):
        own = cpus[rank * each : (rank + 1) * each] or cpus
        told = variables(Seat(rank, 0, rank), [node], count, words)
        env = {**os.environ, **told, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": str(len(own))}
        bound = ["taskset", "--cpu-list", ",".join(map(str, own)), *command]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        ranks.append(subprocess.Popen(bound, cwd=ROOT, env=env, **pipes))  # type: ignore[call-overload]
    try:
        said = [one.communicate(timeout=PATIENCE_S) for one in ranks]
    finally:
        for one in ranks:
            one.kill()
    if any(one.returncode for one in ranks):
        raise SystemExit("\n".join(errors[-3000:] for _, errors in said))
    return [printed for printed, _ in said]
