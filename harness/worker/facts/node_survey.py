"""Tell what a node is, as JSON, wherever any Python since 3.6 runs.

The host sends its text along (``python3 -c``) to a node that may have another architecture, none of
the host's packages, and no network; there it only reads. What it found is judged on the host.
"""

import glob
import json
import os
import platform
import shutil
import subprocess
import sys
from typing import Any, Dict, Iterator, List, Mapping, Set, Tuple

PLACES = ("/scratch", "/local", "/nvme", "/tmp", "/var/tmp", "/dev/shm")  # noqa: S108  not written
VARIABLES = ("SCRATCH", "TMPDIR", "CUDA_VISIBLE_DEVICES", "OMP_PROC_BIND", "KMP_AFFINITY")
SCHEDULERS = ("SLURM_JOB_ID", "LSB_JOBID", "PBS_JOBID", "FLUX_URI")
CONTAINERS = ("APPTAINER_CONTAINER", "SINGULARITY_CONTAINER", "container")
PROGRAMS = {
    "hwloc": ("lstopo-no-graphics", "--of", "xml"),
    "slurm": ("srun", "--version"),
    "mpirun": ("mpirun", "--version"),
    "lsf": ("jsrun", "--version"),
    "pbs": ("qsub", "--version"),
    "flux": ("flux", "--version"),
    "partitions": ("sinfo", "-h", "-o", "%R"),
}
_QUERY = "--query-gpu=uuid,name,driver_version"
NVIDIA = {
    "gpus": (
        "nvidia-smi",
        _QUERY + ",memory.total,persistence_mode,ecc.mode.current,enforced.power.limit",
        "--format=csv,noheader,nounits",
    ),
    "links": ("nvidia-smi", "topo", "-m"),
}
_FILES = (
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/proc/mounts",
    "/proc/loadavg",
    "/proc/stat",
    "/proc/pressure/cpu",
    "/proc/self/cgroup",
    "/proc/self/mountinfo",
    "/proc/sys/kernel/numa_balancing",
    "/proc/driver/nvidia/gpus/*/information",
    "/proc/driver/nvidia/gpus/*/numa_status",
    "/sys/devices/system/cpu/online",
    "/sys/devices/system/cpu/smt/active",
    "/sys/devices/system/cpu/intel_pstate/no_turbo",
    "/sys/devices/system/cpu/cpufreq/boost",
    "/sys/devices/system/cpu/cpu*/topology/thread_siblings_list",
    "/sys/devices/system/cpu/cpu*/topology/physical_package_id",
    "/sys/devices/system/cpu/cpu*/cache/index*/level",
    "/sys/devices/system/cpu/cpu*/cache/index*/shared_cpu_list",
    "/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor",
    "/sys/devices/system/node/online",
    "/sys/devices/system/node/node*/cpulist",
    "/sys/devices/system/node/node*/distance",
    "/sys/devices/system/node/node*/meminfo",
    "/sys/devices/system/node/node*/memory_side_cache/*/size",
    "/sys/devices/system/clocksource/clocksource0/*_clocksource",
    "/sys/kernel/mm/transparent_hugepage/enabled",
    "/sys/hypervisor/type",
    "/sys/class/dmi/id/sys_vendor",
    "/sys/class/dmi/id/product_name",
    "/sys/class/infiniband/*/ports/*/state",
    "/sys/class/infiniband/*/ports/*/rate",
    "/sys/class/infiniband/*/ports/*/link_layer",
    "/sys/class/net/*/operstate",
    "/sys/class/net/*/speed",
    "/sys/class/net/*/device/uevent",
    "/sys/block/*/queue/rotational",
    "/.dockerenv",
    "/run/.containerenv",
)
_GROUPS = (
    "cpu.max",
    "memory.max",
    "cpu.stat",
    "cpu.cfs_quota_us",
    "cpu.cfs_period_us",
    "memory.limit_in_bytes",
)
_MOST = 1 << 16


def survey() -> Dict[str, Any]:
    """Give everything that a probe asks of a node."""
    found = facts()
    found["files"] = files()
    found["devices"] = glob.glob("/dev/nvidia[0-9]*")
    if found["devices"]:
        found["answers"].update(answers(NVIDIA))
    found["packages"] = packages()
    return found


def facts() -> Dict[str, Any]:
    """Give what no file tells."""
    uname = platform.uname()
    environ = {
        name: os.environ[name] for name in VARIABLES + SCHEDULERS + CONTAINERS if name in os.environ
    }
    wanted = [environ[name] for name in ("SCRATCH", "TMPDIR") if environ.get(name)]
    return {
        "uname": [uname.system, uname.node, uname.release, uname.version, uname.machine],
        "affinity": sorted(os.sched_getaffinity(0)),
        "environ": environ,
        "places": {path: _size(path) for path in wanted + list(PLACES) if os.access(path, os.W_OK)},
        "answers": answers(PROGRAMS),
    }


def answers(programs: Mapping[str, Tuple[str, ...]]) -> Dict[str, str]:
    """Let each program that is here speak; one that is not here is left out."""
    found = {}
    for name, argv in programs.items():
        path = shutil.which(argv[0])
        if path is None:
            continue
        try:
            done = subprocess.run(
                (path, *argv[1:]),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=60,
            )
            found[name] = done.stdout.decode("utf-8", "replace")
        except (OSError, subprocess.TimeoutExpired):
            found[name] = ""  # it is there and does not answer
    return found


def files() -> Dict[str, str]:
    """Read what describes the node."""
    found: Dict[str, str] = {}
    for pattern in _FILES + tuple(_group_files()):
        for path in glob.glob(pattern):
            _take(path, found)
    for folder in glob.glob("/proc/driver/nvidia/gpus/*"):
        _take("/sys/bus/pci/devices/" + os.path.basename(folder) + "/local_cpulist", found)
    return found


def _take(path: str, found: Dict[str, str]) -> None:
    try:
        with open(path, "rb") as file:
            found[path] = file.read(_MOST).decode("utf-8", "replace")
    except OSError:
        pass  # not on this machine, or not ours to read


def _group_files() -> Iterator[str]:
    """Name the files of this process's control groups, from its own up to each mount."""
    paths = {""}
    for line in _lines("/proc/self/cgroup"):
        parts = line.split(":", 2)[2].strip().strip("/").split("/")
        paths.update("/".join(parts[:depth]) for depth in range(len(parts) + 1))
    for line in _lines("/proc/self/mountinfo"):
        before, _, after = line.partition(" - ")
        if after.startswith("cgroup"):
            root, folder = before.split()[3:5]
            for path in paths:
                inside = path[len(root.strip("/")) :] if path.startswith(root.strip("/")) else ""
                for name in _GROUPS:
                    yield os.path.join(folder, inside.strip("/"), name)


def _lines(path: str) -> List[str]:
    try:
        with open(path) as file:
            return file.readlines()
    except OSError:
        return []


def _size(path: str) -> int:
    state = os.statvfs(path)
    return state.f_blocks * state.f_frsize


def packages() -> List[str]:
    """Name what this Python could import, by the folders that packages leave behind."""
    found: Set[str] = set()
    for folder in sys.path[1:]:
        if os.path.isdir(folder):
            names = (os.path.splitext(name) for name in os.listdir(folder))
            found.update(stem for stem, kind in names if kind in (".dist-info", ".egg-info"))
    return sorted(found)


if __name__ == "__main__":
    sys.stdout.write(json.dumps(survey()) + "\n")
