"""What a rank needs inside a container: variables, binds, devices, network.

Of the host's environment only what Bakeoff set itself goes in; nothing reaches a network but the
loopback, unless other ranks have to be reached: each rank's loopback is its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from harness.errors import UsageError
from harness.study.framework_variables import Variables
from harness.worker.facts.variables import matches

_KEPT = (
    *("BAKEOFF_*", "OMP_*", "KMP_*", "CUDA_*", "NCCL_*", "MASTER_*"),
    *("LD_PRELOAD", "PYTHONNOUSERSITE", "PYTHONDONTWRITEBYTECODE"),
)
"""What every rank keeps, beside its framework's own."""
_STEERING = ("LD_*", "HOME", "USER", "TMPDIR", "XDG_*", "DOCKER_*", "CONTAINER*", "SLURM_*")
"""Variables that an engine reads for itself, beside search paths."""


@dataclass(frozen=True)
class Room:
    """What a rank needs inside."""

    cwd: str
    env: Mapping[str, str]
    """What is set inside; nothing else of the host is."""
    stated: Sequence[str] = ()
    """Which of it the platform stated: may be a secret, and a command line is read by anybody."""
    readable: Sequence[str] = ()
    writable: Sequence[str] = ()
    gpus: Sequence[int] = ()
    network: bool = False
    """Whether other ranks have to be reached."""
    cpus: Sequence[int] = ()
    """For engines whose ranks are no children of ours and inherit no CPU set."""
    node: int = 0
    """Which of the job's nodes, for engines that start the rank themselves."""
    user: str = ""
    """uid:gid, for engines that would run as root."""
    binds: Sequence[tuple[str, str, bool]] = ()
    """Further (host path, path inside, writable)."""

    @property
    def private(self) -> dict[str, str]:
        """Give what an engine takes from its own environment, which nothing of it steers."""
        return {
            name: self.env[name]
            for name in self.stated
            if name in self.env and not name.endswith("PATH") and not matches(name, _STEERING)
        }

    @property
    def shown(self) -> list[str]:
        """Give the rest as words of a command line."""
        return [f"{name}={self.env[name]}" for name in sorted(self.env.keys() - self.private)]

    @property
    def mounts(self) -> list[tuple[str, str, bool]]:
        """Give every (host path, path inside, writable); the platform's first, ours lie in them."""
        here = [(path, path, False) for path in self.readable]
        return [*self.binds, *here, *((path, path, True) for path in self.writable)]


def room_env(env: Mapping[str, str], wanted: Mapping[str, str], own: Variables) -> dict[str, str]:
    """Keep of a rank's environment what Bakeoff and the platform set: the host's stays outside."""
    ours = {
        name: value
        for name, value in env.items()
        if name in wanted or own.inside(name) or matches(name, _KEPT)
    }
    return {**ours, **wanted}


def parse_bind(text: str) -> tuple[str, str, bool]:
    """Read a bind as every engine writes it: /host, /host:/inside or /host:/inside:rw."""
    parts = text.split(":")
    if not 1 <= len(parts) <= 3 or not all(part.startswith("/") for part in parts[:2]):
        raise UsageError(f"'{text}' is no bind: write /host, /host:/inside or /host:/inside:rw")
    if len(parts) == 3 and parts[2] not in ("ro", "rw"):
        raise UsageError(f"'{text}' ends in '{parts[2]}': a bind is ro or rw")
    return parts[0], parts[1] if len(parts) > 1 else parts[0], parts[2:] == ["rw"]


def with_host_mpi(room: Room, prefix: str) -> Room:
    """Bring the host's MPI inside: its folder, and the paths that find it (the ABI must agree)."""
    env = dict(room.env)
    for name, folder in (("PATH", "bin"), ("LD_LIBRARY_PATH", "lib")):
        env[name] = ":".join(filter(None, (f"{prefix}/{folder}", env.get(name))))
    env.setdefault("OPAL_PREFIX", prefix)  # Open MPI looks for its own files where it was built
    return replace(room, env=env, binds=(*room.binds, (prefix, prefix, False)))
