"""The platform profile: the claim about a machine, and how frameworks start there.

Whatever is unknown is absent. A profile lies in the catalogue or in a user's own folder, and may
extend another.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Self

from pydantic import Field, PrivateAttr, field_validator, model_validator

from harness import plugins
from harness.errors import FaultyFile, UsageError, nearest
from harness.machine import share
from harness.platform.hardware import Accelerators, Ceiling, Count, Memory, Network, Node, Storage
from harness.platform.names import fault_launcher_settings, fault_names, takes_setting
from harness.platform.sources import Source, refined, spread, unknown_place
from harness.platform.starting import Binding, FrameworkThere, Launcher, Observer
from harness.platform.variables import laid_over
from harness.toml.document import Document, read_document
from harness.toml.tables import Listed, Seconds, Table, check

_PRICE = re.compile(r"^[0-9]+(\.[0-9]+)? [A-Z]{3}$")


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
    price_per_node_hour: str | None = None
    """For example "3.06 USD"."""
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
    sources: dict[str, Source] = Field(default_factory=dict)
    """Where values come from, by place: "node.memory", "network.bandwidth" …"""
    _file: str | None = PrivateAttr(default=None)

    @property
    def file(self) -> str | None:
        """Where its profile lies; None if it was read from none."""
        return self._file

    def read_from(self, path: Path) -> Self:
        """Note where its profile lies."""
        noted = self.model_copy()
        noted._file = str(path.resolve())
        return noted

    @field_validator("price_per_node_hour")
    @classmethod
    def _price_names_its_currency(cls, price: str | None) -> str | None:
        if price is not None and not _PRICE.match(price):
            raise ValueError(
                f"'{price}' must be an amount and a currency, for example \"3.06 USD\""
            )
        return price

    @model_validator(mode="after")
    def _accelerators_are_within_the_node(self) -> Self:
        domains = self.node.numa_nodes
        for one in self.accelerators or ():
            if domains is not None and any(number >= domains for number in one.numa):
                raise ValueError(f"accelerators lie on NUMA nodes that a node of {domains} lacks")
        return self

    @property
    def is_simulated(self) -> bool:
        """Whether its trials play a model: nothing runs there."""
        return self.launcher.name == "simulated"

    def framework(self, environment: str) -> FrameworkThere:
        """Give what it says of an environment (``torch@old``), or else of its framework."""
        name = environment.partition("[")[0]
        there = self.frameworks.get(name) or self.frameworks.get(name.partition("@")[0])
        return there or FrameworkThere()

    def variables(self, environment: str) -> dict[str, str]:
        """Give what it sets for the ranks of an environment: for all ranks, then for these."""
        return laid_over(self.environment, self.framework(environment).environment)

    def offers(self) -> dict[str, Any]:
        """Give what requirement expressions may ask of a platform; unknown is None."""
        gpus = self.accelerators
        gpu_sizes = [one.memory for one in gpus or () if one.memory is not None]
        return {
            "gpus": None if gpus is None else sum(one.count for one in gpus),
            "cpus": self.node.cpus or self.node.threads,
            "memory": self.node.addressable_bytes,
            "gpu_memory": min(gpu_sizes, default=None),
            "available_nodes": self.nodes,
        }


def platform_names(beside: Path | None = None) -> tuple[str, ...]:
    """Name every platform there is, a user's own included."""
    return tuple(sorted(plugins.platform_files(beside)))


def load_platform(ref: str = "local", *, beside: Path | None = None) -> Platform:
    """Read a platform by name, or by the path of its file; refuse all its faults together."""
    files = plugins.platform_files(beside)
    path = Path(ref)
    if path.suffix != ".toml":
        if ref not in files:
            known = ", ".join(sorted(files))
            raise UsageError(
                f"no platform is called '{ref}'.{nearest(ref, files)}\n    Known: {known}."
            )
        path = files[ref]
    return _read(path, files, ()).read_from(path)


def _read(path: Path, files: dict[str, Path], below: tuple[Path, ...]) -> Platform:
    document = read_document(path)
    parent = _parent(document, path, files, below)

    def home(key: str) -> str | None:
        if takes_setting(document.data, key):
            return "launcher.settings"
        return "node" if key in Node.model_fields else None

    platform = check(document, Platform, {**document.data, "name": path.stem}, elsewhere=home)
    if "name" in document.data:
        document.fault(("name",), "the file's name is the platform's; leave it out")
    fault_names(document)
    _fault_launcher(document, Launcher() if parent is None else parent.launcher)
    sources = document.data.get("sources")
    for place in sources if isinstance(sources, dict) else ():
        step = unknown_place(Platform, place)
        if step is not None:
            hint = nearest(step[0], step[1])
            document.fault(("sources", place), f"a profile has no '{step[0]}' there.{hint}")
    document.refuse_faults()
    assert platform is not None, "a profile without faults has its value"
    own = spread(document.data, platform.sources)
    if parent is not None:
        inherited = {name: getattr(parent, name) for name in parent.model_fields_set}
        platform = _refined(inherited, platform)
        own = refined(parent.sources, document.data, own)
    platform = platform.model_copy(update={"sources": own})
    return _completed(platform) if platform.as_found else platform


def _fault_launcher(document: Document, inherited: Launcher) -> None:
    table = document.data.get("launcher", {})
    name = table.get("name", inherited.name) if isinstance(table, dict) else None
    if isinstance(name, str):
        fault_launcher_settings(document, name, inherited.settings)


def _parent(
    document: Document, path: Path, files: dict[str, Path], below: tuple[Path, ...]
) -> Platform | None:
    ref = document.data.get("extends")
    if not isinstance(ref, str):
        return None
    others = {name: file for name, file in files.items() if file.resolve() != path.resolve()}
    shipped = plugins.files("platforms").get(ref)
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
    seen: dict[str, Any] = {}
    if node.cpus is None:
        seen["cpus"] = share.cpus()
    if node.cpu is None:
        seen["cpu"] = share.cpu()
    quota = share.cpu_quota()
    if node.cpu_quota is None and quota is not None:
        seen["cpu_quota"] = quota
    memory = share.memory_bytes()
    if not node.memory and memory is not None:
        seen["memory"] = (Memory.model_construct(kind="DDR", size=memory, mode=None),)
    update: dict[str, Any] = {"node": node.model_copy(update=seen)}
    places = [f"node.{name}" for name in seen]
    if platform.accelerators is None:
        update["accelerators"] = tuple(
            Accelerators.model_construct(model=model, count=count)
            for model, count in share.gpus().items()
        )
        places.append("accelerators")
    as_found = Source(measured="as found when planned")
    update["sources"] = {**platform.sources, **dict.fromkeys(places, as_found)}
    return platform.model_copy(update=update)
