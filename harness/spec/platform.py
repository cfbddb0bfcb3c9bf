"""This file is the platform profile: the claim about a machine, and how frameworks start there.

Whatever is unknown is absent. A profile lies in the catalogue or in a user's own folder, and may
extend another.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from harness import providers
from harness.errors import FaultyFile, UsageError, nearest
from harness.spec import found
from harness.spec.document import Document, read_document
from harness.spec.models import Bytes, Listed, Seconds, Table, check

Count = Annotated[int, Field(ge=1)]
Tag = Literal["measured", "declared"]


class Memory(Table):
    """One kind of memory in a node."""

    kind: Literal["DDR", "HBM", "MCDRAM"]
    size: Bytes
    mode: Literal["flat", "cache", "hybrid"] | None = None
    """How fast memory stands beside the slow one."""


class Node(Table):
    """One node."""

    cpu: str | None = None
    """Model name."""
    architecture: str | None = None
    """As `uname -m` prints it."""
    sockets: Count | None = None
    cores: Count | None = None
    """Cores of the whole node."""
    threads_per_core: Count | None = None
    cpus: Count | None = None
    """CPUs that this harness may use, where that is less than the node has."""
    numa_nodes: Count | None = None
    cluster_mode: Literal["all2all", "hemisphere", "quadrant", "snc-2", "snc-4"] | None = None
    memory: Listed[Memory] = ()


class Accelerators(Table):
    """Equal accelerators in each node."""

    model: str
    count: Count
    memory: Bytes | None = None
    """Of one accelerator."""
    link: str | None = None
    """What joins them: PCIe 3, NVLink 1, NVSwitch …"""
    graph: Listed[Listed[str]] = ()
    """Pairs as `nvidia-smi topo -m` names them, for example ["0", "1", "NV2"]."""


class Network(Table):
    """What joins the nodes."""

    fabric: str
    interface: str | None = None


class Storage(Table):
    """One storage tier."""

    path: str
    kind: str | None = None
    """Lustre, NVMe, memory …"""
    roles: Listed[Literal["data", "checkpoint", "fast"]] = ()
    size: Bytes | None = None


class Ceiling(Table):
    """The most that this machine can do of something, in its base unit (FLOP/s, bytes/s)."""

    value: Annotated[float, Field(gt=0)]
    unit: Literal["FLOP/s", "bytes/s", "operations/s"]
    tag: Tag
    source: str
    """The document and table, or the run that measured it."""


class Launcher(Table):
    """What starts the ranks."""

    name: str = "local"
    settings: dict[str, str | int | bool] = Field(default_factory=dict)
    """Its own settings: partition, account, constraint …"""


class Binding(Table):
    """How ranks are laid on CPUs."""

    policy: Literal["none", "compact", "spread"] = "none"
    hyper_threads: bool = True
    oversubscribe: bool = False
    """Let ranks share CPUs with each other or with the observer; their trials are marked."""


class Observer(Table):
    """CPUs kept for the agent of each node."""

    cores: Annotated[int, Field(ge=0)] = 1


class Container(Table):
    """An image that a framework runs in."""

    engine: str
    image: str


class FrameworkThere(Table):
    """Where a framework lives on this platform, if not in an environment of Bakeoff's own."""

    interpreter: str | None = None
    modules: Listed[str] = ()
    environment: dict[str, str] = Field(default_factory=dict)
    container: Container | None = None


class Platform(Table):
    """A machine as its profile claims it."""

    name: str = Field(default="", exclude=False)
    """The file's name; not written in the file."""
    title: str
    """What people call the machine."""
    extends: str | None = None
    """The profile that this one refines."""
    as_found: bool = False
    """Fill what is absent with what this machine shows while planning."""
    tried: bool = True
    """False: nobody here has run on this machine."""
    nodes: Count | None = None
    """How many nodes there are."""
    node: Node = Node()
    accelerators: Listed[Accelerators] | None = None
    """Per node; an empty list says that there are none."""
    network: Network | None = None
    storage: dict[str, Storage] = Field(default_factory=dict)
    ceilings: dict[str, Ceiling] = Field(default_factory=dict)
    launcher: Launcher = Launcher()
    binding: Binding = Binding()
    observer: Observer = Observer()
    environment: dict[str, str] = Field(default_factory=dict)
    """Variables set for every rank."""
    modules: Listed[str] = ()
    """Environment modules loaded for every rank."""
    frameworks: dict[str, FrameworkThere] = Field(default_factory=dict)
    """By framework, or framework@environment."""
    start_up: Seconds | None = None
    """What starting a trial takes beyond the framework's own start."""

    def offers(self) -> dict[str, Any]:
        """Give what requirement expressions may ask of a platform; unknown is None."""
        gpus = self.accelerators
        sizes = [tier.size for tier in self.node.memory]
        gpu_sizes = [one.memory for one in gpus or () if one.memory is not None]
        threads = self.node.threads_per_core or 1
        return {
            "gpus": None if gpus is None else sum(one.count for one in gpus),
            "cpus": self.node.cpus or (self.node.cores and self.node.cores * threads),
            "memory": sum(sizes) or None,
            "gpu_memory": min(gpu_sizes, default=None),
            "available_nodes": self.nodes,
        }


def platform_names(beside: Path | None = None) -> tuple[str, ...]:
    """Name every platform there is, a user's own included."""
    return tuple(sorted(providers.platform_files(beside)))


def load_platform(ref: str = "local", *, beside: Path | None = None) -> Platform:
    """Read a platform by name, or by the path of its file; refuse all its faults together."""
    files = providers.platform_files(beside)
    path = Path(ref)
    if path.suffix != ".toml":
        if ref not in files:
            known = ", ".join(sorted(files))
            raise UsageError(
                f"no platform is called '{ref}'.{nearest(ref, files)}\n    Known: {known}."
            )
        path = files[ref]
    return _read(path, files, ())


def _read(path: Path, files: dict[str, Path], below: tuple[Path, ...]) -> Platform:
    document = read_document(path)
    parent = _parent(document, path, files, below)
    platform = check(document, Platform, {**document.data, "name": path.stem})
    if "name" in document.data:
        document.fault(("name",), "the file's name is the platform's; leave it out")
    document.refuse_faults()
    assert platform is not None, "a profile without faults has its value"
    if parent is not None:
        inherited = {name: getattr(parent, name) for name in parent.model_fields_set}
        platform = _refined(inherited, platform)
    return _completed(platform) if platform.as_found else platform


def _parent(
    document: Document, path: Path, files: dict[str, Path], below: tuple[Path, ...]
) -> Platform | None:
    ref = document.data.get("extends")
    if not isinstance(ref, str):
        return None
    others = {name: file for name, file in files.items() if file.resolve() != path.resolve()}
    shipped = providers.files("platforms").get(ref)
    if shipped is not None and shipped.path.resolve() != path.resolve():
        others.setdefault(ref, shipped.path)
    if ref not in others:
        hint = nearest(ref, others)
        document.fault(("extends",), f"no platform is called '{ref}'.{hint}", sorted(others))
        return None
    if others[ref].resolve() in below:
        document.fault(("extends",), f"'{ref}' extends this profile in its turn")
        return None
    try:
        return _read(others[ref], files, (*below, path.resolve()))
    except FaultyFile as error:
        document.faults += error.faults
        return None


def _refined(inherited: dict[str, Any], platform: Platform) -> Platform:
    """Lay a profile over the one it extends: tables merge key by key, the rest is replaced."""
    merged = dict(inherited)
    for name in platform.model_fields_set:
        merged[name] = _laid_over(inherited.get(name), getattr(platform, name))
    return platform.model_copy(update=merged)


def _laid_over(old: Any, new: Any) -> Any:
    if isinstance(old, dict) and isinstance(new, dict):
        return {**old, **{key: _laid_over(old.get(key), value) for key, value in new.items()}}
    if isinstance(old, Table) and type(old) is type(new):
        update = {
            key: _laid_over(getattr(old, key), getattr(new, key)) for key in new.model_fields_set
        }
        return old.model_copy(update=update)
    return new


def _completed(platform: Platform) -> Platform:
    """Fill what a profile leaves open with what this machine shows."""
    node = platform.node
    facts: dict[str, Any] = {"cpus": node.cpus or found.cpus(), "cpu": node.cpu or found.cpu()}
    memory = found.memory_bytes()
    if not node.memory and memory is not None:
        facts["memory"] = (Memory.model_construct(kind="DDR", size=memory, mode=None),)
    update: dict[str, Any] = {"node": node.model_copy(update=facts)}
    if platform.accelerators is None:
        update["accelerators"] = tuple(
            Accelerators.model_construct(model=model, count=count)
            for model, count in found.gpus().items()
        )
    return platform.model_copy(update=update)
