"""The command of each engine that enters a container: argv in front of argv, nothing started."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from harness import private_file
from harness.errors import UsageError
from harness.launch.container.room import Room
from harness.platform.starting import Container

_PREFIXES = {"apptainer": "APPTAINERENV_", "singularity": "SINGULARITYENV_"}
_PREFIXES |= dict.fromkeys(("docker", "podman", "pyxis"), "")
"""How an engine calls what it shall set inside, in its own environment."""
_NVIDIA = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools")


def enter(container: Container, room: Room, argv: Sequence[str]) -> tuple[str, ...]:
    """Give the command that runs ``argv`` inside."""
    return (*_ENGINES[container.engine](container.image, room), *argv)


def handed(container: Container, room: Room) -> dict[str, str]:
    """Give the variables that the engine's command has to find in its own environment."""
    if container.engine not in _PREFIXES:
        return {}
    return {_PREFIXES[container.engine] + name: value for name, value in room.private.items()}


def private_words(container: Container, room: Room) -> str:
    """Give what the engine's command reads from its private file."""
    words = _PRIVATE_WORDS.get(container.engine)
    return words(room) if words is not None and room.private else ""


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
    argv = ["env", "USER=bakeoff", "ch-run", "--no-passwd", "--unset-env=*", "--env-no-expand"]
    argv += [f"--bind={source}:{target}" for source, target, _ in room.mounts]
    argv += [f"--bind={device}" for device in _gpu_devices(room)]
    argv += [f"--set-env={word}" for word in room.shown]
    argv += [f"--set-env=/proc/self/fd/{private_file.NUMBER}"] if room.private else []
    return [*argv, f"--cd={room.cwd}", image, "--"]


def _of_charliecloud(room: Room) -> str:
    """Write its file of variables, one a line."""
    for name, value in room.private.items():
        if "\n" in value:
            raise UsageError(
                f"{name} has several lines, and charliecloud takes variables of one line only."
            )
    # It takes one pair of quotes away, of which a value may have its own.
    return "".join(f"{name}='{value}'\n" for name, value in room.private.items())


def _of_bwrap(room: Room) -> str:
    """Write further options, each ended by NUL."""
    return "".join(f"--setenv\0{name}\0{value}\0" for name, value in room.private.items())


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
    for word in room.shown:
        name, _, value = word.partition("=")
        argv += ["--setenv", name, value]
    argv += ["--args", private_file.NUMBER] if room.private else []
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
_PRIVATE_WORDS: Mapping[str, Callable[[Room], str]] = {
    "charliecloud": _of_charliecloud,
    "bwrap": _of_bwrap,
}
