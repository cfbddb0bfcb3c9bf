"""Put a rank into the container of its job's environment.

The worker's payload and libraries are bound read-only, its trial's folder writable.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from harness.agent.protocol import RankCommand
from harness.errors import UsageError
from harness.launch.binding import Share
from harness.launch.container.engines import enter, handed, private_words
from harness.launch.container.room import Room, parse_bind, room_env, with_host_mpi
from harness.platform.platform import Platform
from harness.platform.starting import Container
from harness.platform.variables import SEARCH_PATH, laid_over
from harness.study.framework import framework_info
from harness.study.framework_variables import Variables
from harness.study.matrix import adapter_of
from harness.worker.checkpoints.request import THROUGH, TO
from harness.worker.job import Job

DRIVER_CACHE = "CUDA_CACHE_PATH"
"""Every rank has this one; its folder is that of all caches of a cell."""
_READ = ("data", "files", "proof")
_SAVED_TO = (TO, THROUGH)
_MADE = "made"
"""What an examination has its rank make, beside what it is given; it is not there yet."""
_NO_CHILDREN = ("docker", "pyxis")


@dataclass(frozen=True)
class ContainerCommand:
    """The container that a job's ranks are started in."""

    platform: str
    container: Container
    env: Mapping[str, str]
    """What the platform sets inside."""
    own: Variables
    """Those of the framework, which a rank keeps."""
    job: Job
    payload: str

    @property
    def python(self) -> tuple[str, ...]:
        """The interpreter inside."""
        return (self.container.interpreter,)

    def wrap(self, rank: RankCommand, share: Share) -> RankCommand:
        """Start a rank, whose command is one inside, through the container."""
        if self.container.engine in _NO_CHILDREN and share.memory.options:
            raise UsageError(
                f"{self.platform}: binding.memory does not reach into {self.container.engine}, "
                'whose ranks are no children of ours.\n    Use memory = "any", or apptainer.'
            )
        paths = self.job.paths
        caches = [str(Path(rank.env[DRIVER_CACHE]).parent)] if DRIVER_CACHE in rank.env else []
        room = Room(
            cwd=rank.cwd,
            env=laid_over(room_env(rank.env, self.env, self.own), {SEARCH_PATH: self.payload}),
            stated=tuple(sorted(self.env)),
            readable=(self.payload, *(paths[name] for name in _READ if name in paths)),
            writable=(
                self.job.directory,
                *caches,
                *(paths[name] for name in _SAVED_TO if name in paths),
                *([str(Path(paths[_MADE]).parent)] if _MADE in paths else ()),
            ),
            gpus=share.devices,
            network=self.job.scale.ranks > 1,
            cpus=rank.cpus,
            node=rank.node,
            binds=tuple(map(parse_bind, self.container.binds)),
        )
        if self.container.host_mpi is not None:
            room = with_host_mpi(room, self.container.host_mpi)
        env = {**rank.env, **handed(self.container, room)}
        argv = enter(self.container, room, rank.argv)
        return replace(rank, argv=argv, env=env, private=private_words(self.container, room))


def box_of(platform: Platform, job: Job, payload: str) -> ContainerCommand | None:
    """Find the container of a job's environment; None where it asks for none."""
    if not job.factors.get("container"):
        return None
    there = platform.framework(job.environment)
    if there.container is None:
        name = job.environment.partition("[")[0]
        raise UsageError(f"{platform.name} names no container for {name}")
    if there.container.engine == "pyxis" and platform.launcher.name != "slurm":
        raise UsageError(f"{platform.name}: pyxis is a part of srun; its launcher must be slurm")
    env = platform.variables(job.environment)
    own = framework_info(adapter_of(job.framework)).rank_variables(job.strategy, job.factors)
    return ContainerCommand(platform.name, there.container, env, own, job, payload)
