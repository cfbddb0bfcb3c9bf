"""Say where a worker stands: rank, size and host, from any launcher's environment.

Our own names win, then whatever started this process last: torchrun runs under an MPI or Slurm,
Horovod's runner under either, and an MPI under Slurm. A launcher counts where both its rank and
its size are set. Slurm's size is that of the *step*: a batch script has SLURM_NTASKS too, yet runs
alone. Where no launcher spoke, the worker is the only one.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Mapping, NamedTuple, Optional, Tuple

TOKEN = "BAKEOFF_TOKEN"  # noqa: S105  the name of a variable, no secret
"""Of every process of a trial, however it daemonises: which trial's it is."""
TURNS = "BAKEOFF_TURNS"
"""Of a rank that takes turns: the descriptor through which its agent gives them."""


@dataclass(frozen=True)
class Place:
    """One rank among all of its trial."""

    rank: int
    size: int
    local_rank: int
    local_size: int
    host: str
    launcher: str
    """Whose environment said so, or ``none``."""


class Names(NamedTuple):
    """How one launcher calls things; several names are alternatives."""

    launcher: str
    rank: str
    size: str
    local_rank: Tuple[str, ...]
    local_size: Tuple[str, ...]


LAUNCHERS = (
    Names(
        "bakeoff",
        "BAKEOFF_RANK",
        "BAKEOFF_SIZE",
        ("BAKEOFF_LOCAL_RANK",),
        ("BAKEOFF_LOCAL_SIZE",),
    ),
    Names("torchrun", "RANK", "WORLD_SIZE", ("LOCAL_RANK",), ("LOCAL_WORLD_SIZE",)),
    Names(
        "horovod",
        "HOROVOD_RANK",
        "HOROVOD_SIZE",
        ("HOROVOD_LOCAL_RANK",),
        ("HOROVOD_LOCAL_SIZE",),
    ),
    Names(
        "openmpi",
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_SIZE",
        ("OMPI_COMM_WORLD_LOCAL_RANK",),
        ("OMPI_COMM_WORLD_LOCAL_SIZE",),
    ),
    # MPICH and Intel MPI under Hydra; under `srun --mpi=pmi2` only Slurm knows the local rank.
    Names(
        "hydra",
        "PMI_RANK",
        "PMI_SIZE",
        ("MPI_LOCALRANKID", "SLURM_LOCALID"),
        ("MPI_LOCALNRANKS", "SLURM_STEP_TASKS_PER_NODE"),
    ),
    Names(
        "slurm",
        "SLURM_PROCID",
        "SLURM_STEP_NUM_TASKS",
        ("SLURM_LOCALID",),
        ("SLURM_STEP_TASKS_PER_NODE",),
    ),
)


def find(environment: Mapping[str, str], host: Optional[str] = None) -> Place:
    """Read the place from an environment; refuse one that contradicts itself."""
    here = host or environment.get("BAKEOFF_HOST") or os.uname().nodename
    for names in LAUNCHERS:
        if names.rank in environment and names.size in environment:
            return _read(names, environment, here)
    return Place(rank=0, size=1, local_rank=0, local_size=1, host=here, launcher="none")


def _read(names: Names, environment: Mapping[str, str], host: str) -> Place:
    rank, size = _number(names.rank, environment), _number(names.size, environment)
    local_rank = _first(names.local_rank, environment)
    local_size = _first(names.local_size, environment)
    if local_rank is None and size > 1:
        raise ValueError(
            "{} of {} ranks has no {}".format(rank, size, " or ".join(names.local_rank))
        )
    place = Place(
        rank=rank,
        size=size,
        local_rank=local_rank or 0,
        local_size=local_size or (local_rank or 0) + 1,
        host=host,
        launcher=names.launcher,
    )
    if not (0 <= place.rank < place.size and 0 <= place.local_rank < place.local_size <= size):
        raise ValueError("{} contradicts itself: {}".format(names.launcher, place))
    return place


def _first(names: Tuple[str, ...], environment: Mapping[str, str]) -> Optional[int]:
    for name in names:
        if name == "SLURM_STEP_TASKS_PER_NODE" and name in environment:
            return _tasks_here(environment)
        if name in environment:
            return _number(name, environment)
    return None


def _tasks_here(environment: Mapping[str, str]) -> int:
    """Read this node's count in Slurm's run-length list, for example ``4(x2),3``."""
    text = environment["SLURM_STEP_TASKS_PER_NODE"]
    counts = []
    for part in text.split(","):
        match = re.match(r"^(\d+)(?:\(x(\d+)\))?$", part)
        if match is None:
            raise ValueError("SLURM_STEP_TASKS_PER_NODE: '{}' is not a list of counts".format(text))
        counts += [int(match.group(1))] * int(match.group(2) or 1)
    node = _number("SLURM_NODEID", environment) if len(counts) > 1 else 0
    if node >= len(counts):
        raise ValueError("SLURM_NODEID {} is not in '{}'".format(node, text))
    return counts[node]


def _number(name: str, environment: Mapping[str, str]) -> int:
    text = environment.get(name, "")
    try:
        return int(text)
    except ValueError:
        raise ValueError("{}: '{}' is not a whole number".format(name, text)) from None
