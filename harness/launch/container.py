"""Put a rank into a container: argv in front of argv, nothing started.

One function an engine. The worker's payload and libraries are bound read-only, its trial's folder
writable; of the host's environment only what Bakeoff set itself goes in; nothing reaches a network
but the loopback, unless ranks of other nodes have to be reached.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.agent.protocol import RankCommand
from harness.errors import UsageError
from harness.launch.binding import Share
from harness.platform.platform import Container, Platform
from harness.platform.variables import SEARCH_PATH, laid_over
from harness.study.framework import framework_info
from harness.study.framework_variables import Variables
from harness.study.matrix import adapter_of
from harness.worker.checkpoints.request import THROUGH, TO
from harness.worker.facts.variables import matches
from harness.worker.job import Job

DRIVER_CACHE = "CUDA_CACHE_PATH"
"""Every rank has this one; its folder is that of all caches of a cell."""
_KEPT = (
    *("BAKEOFF_*", "OMP_*", "KMP_*", "CUDA_*", "NCCL_*", "MASTER_*"),
    *("LD_PRELOAD", "PYTHONNOUSERSITE"),
)
"""What every rank keeps, beside its framework's own."""
_READ = ("data", "files", "proof")
_SAVED_TO = (TO, THROUGH)
_STEERING = ("LD_*", "HOME", "USER", "TMPDIR", "XDG_*", "DOCKER_*", "CONTAINER*", "SLURM_*")
"""Variables that an engine reads for itself, beside search paths."""
_PREFIXES = {"apptainer": "APPTAINERENV_", "singularity": "SINGULARITYENV_"}
_PREFIXES |= dict.fromkeys(("docker", "podman", "pyxis"), "")
"""How an engine calls what it shall set inside, in its own environment."""
_NO_CHILDREN = ("docker", "pyxis")
_NVIDIA = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools")


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
    """Whether ranks on other nodes have to be reached."""
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


def enter(container: Container, room: Room, argv: Sequence[str]) -> tuple[str, ...]:
    """Give the command that runs ``argv`` inside."""
    return (*_ENGINES[container.engine](container.image, room), *argv)


def handed(container: Container, room: Room) -> dict[str, str]:
    """Give the variables that the engine's command has to find in its own environment."""
    if container.engine not in _PREFIXES:  # takes what it gets on its command line only
        return {}
    return {_PREFIXES[container.engine] + name: value for name, value in room.private.items()}


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
            ),
            gpus=share.devices,
            network=self.job.scale.nodes > 1,
            cpus=rank.cpus,
            node=rank.node,
            binds=tuple(map(parse_bind, self.container.binds)),
        )
        if self.container.host_mpi is not None:
            room = with_host_mpi(room, self.container.host_mpi)
        env = {**rank.env, **handed(self.container, room)}
        return replace(rank, argv=enter(self.container, room, rank.argv), env=env)


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
    own = framework_info(adapter_of(job.framework)).rank_variables(job.strategy)
    return ContainerCommand(platform.name, there.container, env, own, job, payload)


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


def _apptainer(image: str, room: Room, program: str = "apptainer") -> list[str]:
    argv = [program, "exec", "--cleanenv", "--no-home", "--containall"]
    if room.gpus:
        argv.append("--nv")
    if not room.network:
        argv += ["--net", "--network", "none"]
    argv += [f"--bind={_colon(mount)}" for mount in room.mounts]
    argv += [f"--env={word}" for word in room.shown]
    return [*argv, "--pwd", room.cwd, image]


def _singularity(image: str, room: Room) -> list[str]:
    return _apptainer(image, room, "singularity")


def _docker(image: str, room: Room) -> list[str]:
    devices = ",".join(map(str, room.gpus))
    gpus = ["--gpus", f'"device={devices}"'] if room.gpus else []
    return _oci("docker", image, room, gpus)


def _podman(image: str, room: Room) -> list[str]:
    gpus = [word for gpu in room.gpus for word in ("--device", f"nvidia.com/gpu={gpu}")]
    return _oci("podman", image, room, [*gpus, "--cgroups=no-conmon"])


def _oci(program: str, image: str, room: Room, more: Sequence[str]) -> list[str]:
    # The host's processes and shared memory: the agent finds ranks by pid, ranks share /dev/shm.
    argv = [program, "run", "--rm", "--init", "--pid=host", "--ipc=host", "--ulimit=memlock=-1"]
    argv.append("--network=host" if room.network else "--network=none")
    if room.user:
        argv.append(f"--user={room.user}")
    if room.cpus:
        argv.append(f"--cpuset-cpus={','.join(map(str, room.cpus))}")
    argv += more
    argv += [f"--volume={_colon(mount)}" for mount in room.mounts]
    argv += [f"--env={word}" for word in (*room.shown, *sorted(room.private))]
    return [*argv, f"--workdir={room.cwd}", image]


def _charliecloud(image: str, room: Room) -> list[str]:
    """Enter with ch-run; it has no network of its own to take away, and GPUs come by binds."""
    # It ends where nobody says who the user is, though without --home that name goes nowhere.
    argv = ["env", "USER=bakeoff", "ch-run", "--no-passwd", "--unset-env=*"]
    argv += [f"--bind={source}:{target}" for source, target, _ in room.mounts]
    argv += [f"--bind={device}" for device in _gpu_devices(room)]
    argv += [f"--set-env={name}={value}" for name, value in sorted(room.env.items())]
    return [*argv, f"--cd={room.cwd}", image, "--"]


def _bwrap(image: str, room: Room) -> list[str]:
    """Enter with bubblewrap; the image is the folder of a root file system, or / itself."""
    argv = ["bwrap", "--die-with-parent", "--ro-bind", image, "/", "--proc", "/proc"]
    argv += ["--dev", "/dev", "--tmpfs", "/tmp"]  # noqa: S108  the container's own
    for source, target, writable in room.mounts:
        argv += ["--bind" if writable else "--ro-bind", source, target]
    for device in _gpu_devices(room):
        argv += ["--dev-bind", device, device]
    argv += [] if room.network else ["--unshare-net"]
    argv.append("--clearenv")
    for name, value in sorted(room.env.items()):
        argv += ["--setenv", name, value]
    return [*argv, "--chdir", room.cwd, "--"]


def _pyxis(image: str, room: Room) -> list[str]:
    """Start a step of srun in the image, which enroot's plug-in provides, on the rank's own node.

    The step is no child of ours: it is told its CPUs, and --container-env keeps what we set over
    what the image sets. Slurm numbers a step's GPUs itself, so a rank is told its own inside.
    """
    cpus = f"mask_cpu:{sum(1 << cpu for cpu in room.cpus):#x}" if room.cpus else "none"
    seen = room.env.get("CUDA_VISIBLE_DEVICES")
    return [
        *("env", *room.shown),
        *("srun", "--nodes=1", "--ntasks=1", f"--relative={room.node}", "--overlap", "--mem=0"),
        *("--mpi=none", "--export=ALL", "--unbuffered", f"--cpu-bind={cpus}"),
        f"--container-image={image}",
        f"--container-mounts={','.join(map(_colon, room.mounts))}",
        f"--container-workdir={room.cwd}",
        "--no-container-mount-home",
        f"--container-env={','.join(sorted(room.env))}",
        *(("env", f"CUDA_VISIBLE_DEVICES={seen}") if seen is not None else ()),
    ]


def _colon(mount: tuple[str, str, bool]) -> str:
    source, target, writable = mount
    return f"{source}:{target}" if writable else f"{source}:{target}:ro"


def _gpu_devices(room: Room) -> list[str]:
    return [*(f"/dev/nvidia{gpu}" for gpu in room.gpus), *_NVIDIA] if room.gpus else []


_ENGINES: Mapping[str, Callable[[str, Room], list[str]]] = {
    "apptainer": _apptainer,
    "singularity": _singularity,
    "docker": _docker,
    "podman": _podman,
    "charliecloud": _charliecloud,
    "bwrap": _bwrap,
    "pyxis": _pyxis,
}
