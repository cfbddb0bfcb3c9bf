"""Open plain MPI for a job, through mpi4py: exchanges of messages and nothing else.

What an MPI reaches without a framework above it is what the frameworks' own exchanges are held
against. Buffers are numpy's, so no message is pickled or copied on its way into the MPI.
"""

from __future__ import annotations

import os
from typing import Any, List, Mapping, Tuple

from harness.worker.contracts import Unsupported
from harness.worker.feed import Feed
from harness.worker.job import Job
from harness.worker.place import Place


class Exchange:
    """One message, exchanged again and again."""

    def __init__(self, mpi: Any, operation: str, message: int) -> None:
        import numpy

        self._mpi = mpi
        self._world = mpi.COMM_WORLD
        self._rank, size = self._world.Get_rank(), self._world.Get_size()
        self._size = size
        is_sum = operation == "all-reduce"
        kind, width = (numpy.float32, 4) if is_sum else (numpy.uint8, 1)
        self._parts = size if operation == "all-gather" else 1
        self._sent = numpy.zeros(message // width // self._parts, kind)
        self._arrived = numpy.zeros(message // width, kind)
        if operation == "broadcast":
            self._arrived = self._sent
        self.step = {
            "all-reduce": self._all_reduce,
            "all-gather": self._all_gather,
            "broadcast": self._broadcast,
            "point-to-point": self._pass_on,
        }[operation]

    def fill(self, value: float) -> None:
        """Let this rank's message hold a value."""
        self._sent.fill(value)

    def sync(self) -> None:
        """Return at once: a call returns when it is done."""

    def received(self) -> List[Tuple[float, float]]:
        """Give the extremes of what arrived."""
        parts = self._arrived.reshape(self._parts, -1)
        return [(float(part.min()), float(part.max())) for part in parts]

    def agree(self, value: float) -> float:
        """Give the largest value any rank offers."""
        return float(self._world.allreduce(value, op=self._mpi.MAX))

    def _all_reduce(self) -> None:
        self._world.Allreduce(self._sent, self._arrived, self._mpi.SUM)

    def _all_gather(self) -> None:
        self._world.Allgather(self._sent, self._arrived)

    def _broadcast(self) -> None:
        self._world.Bcast(self._sent, 0)

    def _pass_on(self) -> None:
        after, before = (self._rank + 1) % self._size, (self._rank - 1) % self._size
        self._world.Sendrecv(self._sent, after, 0, self._arrived, before, 0)


class MpiAdapter:
    """An MPI in this process."""

    def __init__(self, mpi: Any) -> None:
        self._mpi = mpi

    def versions(self) -> Mapping[str, str]:
        """Name the MPI and what speaks to it."""
        import mpi4py

        return {"mpi4py": mpi4py.__version__, "MPI": _library(self._mpi)}

    def activity(self, workload: Any, feed: Feed, options: Mapping[str, Any]) -> Any:
        """Refuse: an MPI computes nothing."""
        del feed, options
        raise Unsupported("mpi adapter: no workload of kind '{}'".format(workload.kind))

    def exchange(self, operation: str, message: int) -> Exchange:
        """Exchange messages."""
        return Exchange(self._mpi, operation, message)

    def facts(self) -> Mapping[str, Any]:
        """Name what carried the messages."""
        return {"device": "cpu", "collectives": "mpi: {}".format(_library(self._mpi))}

    def close(self) -> None:
        """Leave the other ranks."""
        self._mpi.Finalize()


def _library(mpi: Any) -> str:
    """Give an MPI's own name without the rest of its sentence."""
    text = str(mpi.Get_library_version()).strip("\x00").splitlines()[0]
    return text.partition(",")[0].strip()


def open(job: Job, place: Place) -> MpiAdapter:  # noqa: A001 - the contract's name
    """Start the MPI; its ranks meet in here, or each would exchange with itself."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise Unsupported(
            "no MPI here: {}; install one, for example openmpi-bin".format(error)
        ) from error
    size = MPI.COMM_WORLD.Get_size()
    if size != place.size:
        raise Unsupported(
            "the MPI sees {} of {} ranks: it has to start them itself, with the launcher mpirun, "
            "or slurm with its setting mpi".format(size, place.size)
        )
    return MpiAdapter(MPI)
