"""Read a topology from the XML that hwloc 2 writes (``lstopo machine.xml``).

The format is hwloc's documented export. Files come from other people's machines, so a declaration
of entities, which could make a small file fill the memory, is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from xml.parsers import expat

from harness.errors import UsageError
from harness.machine.topology import Core, Device, MemoryNode, Topology, with_nearest

_PCI_GPU = "03"
_KINDS = {"DRAM": "DDR", "MCDRAM": "MCDRAM", "HBM": "HBM", "GPUMemory": "GPU"}
_LINK_RATE = 20_000
"""MB/s of one NVLink of the first generation, and 25,000 of later ones."""


@dataclass
class _Element:
    name: str
    attributes: Mapping[str, str]
    children: list[_Element] = field(default_factory=list)
    text: str = ""

    def walk(self) -> Iterator[_Element]:
        yield self
        for child in self.children:
            yield from child.walk()

    @property
    def type(self) -> str:
        return self.attributes.get("type", "")


def read_hwloc(text: str, where: str = "hwloc XML") -> Topology:
    """Read a topology; refuse what is no hwloc 2 XML."""
    try:
        return _read(text, where)
    except (ValueError, KeyError, IndexError, RecursionError) as problem:
        what = f"{type(problem).__name__}: {problem}"
        raise UsageError(f"{where}: is not as hwloc writes it ({what[:200]})") from None


def _read(text: str, where: str) -> Topology:
    root = _parsed(text, where)
    machine = next((one for one in root.children if one.type == "Machine"), None)
    if root.name != "topology" or machine is None:
        raise UsageError(f"{where}: is no topology of hwloc 2 (lstopo FILE.xml writes one)")
    allowed = _cpuset(machine.attributes.get("allowed_cpuset", machine.attributes["cpuset"]))
    if not allowed:
        raise UsageError(f"{where}: names no CPU that may be used")
    topology = Topology(
        tuple(_cores(machine)),
        with_nearest(_memories(machine), _distances(root)),
        tuple(_devices(machine)),
        _links(root, machine),
    )
    return topology.within(allowed)


def _parsed(text: str, where: str) -> _Element:
    parser = expat.ParserCreate()
    stack = [_Element("", {})]

    def start(name: str, attributes: dict[str, str]) -> None:
        element = _Element(name, attributes)
        stack[-1].children.append(element)
        stack.append(element)

    def refuse(*_entity: object) -> None:
        raise UsageError(f"{where}: declares XML entities, which no hwloc file does")

    def characters(data: str) -> None:
        stack[-1].text += data

    parser.StartElementHandler = start
    parser.EndElementHandler = lambda _name: stack.pop()
    parser.CharacterDataHandler = characters
    parser.EntityDeclHandler = refuse
    try:
        parser.Parse(text, True)
    except expat.ExpatError as error:
        raise UsageError(f"{where}: is no XML: {error}") from None
    return stack[0].children[0]


def _cores(machine: _Element) -> Iterator[Core]:
    caches = 0
    for package, inside in _packages(machine):
        l2_of: dict[int, int] = {}
        for cache in inside.walk():
            if cache.type == "L2Cache":
                caches += 1
                l2_of.update(dict.fromkeys(_cpuset(cache.attributes["cpuset"]), caches))
        for core in inside.walk():
            if core.type == "Core":
                cpus = tuple(
                    int(one.attributes["os_index"]) for one in core.walk() if one.type == "PU"
                )
                if cpus:
                    yield Core(cpus, package, l2_of.get(cpus[0], -1 - cpus[0]))


def _packages(machine: _Element) -> Iterator[tuple[int, _Element]]:
    """Number packages in order: inside a control group their own numbers repeat."""
    yield from enumerate([one for one in machine.walk() if one.type == "Package"] or [machine])


def _memories(machine: _Element) -> Iterator[MemoryNode]:
    """Give NUMA nodes; memory-side caches lie around them (MemCache) or, in hwloc 2.0, beside."""
    caches = {
        one.attributes["cpuset"]: int(one.attributes.get("cache_size", 0)) or None
        for one in machine.walk()
        if one.type == "MemCache" or one.attributes.get("subtype") == "MemorySideCache"
    }
    for one in machine.walk():
        if one.type != "NUMANode":
            continue
        kind = _KINDS.get(one.attributes.get("subtype", "DRAM"), "DDR")
        cpuset = one.attributes.get("cpuset", "")
        is_elsewhere = not _cpuset(cpuset) and _cpuset(one.attributes.get("complete_cpuset", ""))
        if kind != "GPU" and not is_elsewhere:
            yield MemoryNode(
                int(one.attributes["os_index"]),
                frozenset(_cpuset(cpuset)),
                kind,
                int(one.attributes.get("local_memory", 0)) or None,
                caches.get(cpuset) if kind == "DDR" else None,
            )


def _devices(machine: _Element) -> Iterator[Device]:
    """GPUs are numbered as NVML does (nvml0 …), else in the order of their PCI addresses."""
    place: frozenset[int] = frozenset()
    named: dict[str, Device] = {}
    plain: list[Device] = []

    def walk(element: _Element, near: frozenset[int]) -> None:
        own = element.attributes.get("cpuset")
        near = frozenset(_cpuset(own)) if own else near
        name = element.attributes.get("name", "")
        if element.type == "OSDev" and name.startswith("nvml") and name[4:].isdigit():
            model = next((o.attributes["value"] for o in element.children if _is_model(o)), "")
            named[name] = Device(int(name[4:]), near, model)
        kind = element.attributes.get("pci_type", "")
        if element.type == "PCIDev" and kind.startswith(_PCI_GPU) and "[10de:" in kind:
            plain.append(Device(len(plain), near))
        for child in element.children:
            walk(child, near)

    walk(machine, place)
    yield from sorted(named.values(), key=lambda one: one.index) if named else plain


def _is_model(info: _Element) -> bool:
    return info.attributes.get("name") == "GPUModel"


def _links(root: _Element, machine: _Element) -> dict[tuple[int, int], str]:
    """Read hwloc's matrix of NVLink bandwidths; two GPUs at one switch are linked through it."""
    matrix = next(
        (one for one in root.walk() if one.attributes.get("name") == "NVLinkBandwidth"), None
    )
    if matrix is None:
        return {}
    names = {
        f"OSDev:{one.attributes['gp_index']}": int(one.attributes["name"][4:])
        for one in machine.walk()
        if one.type == "OSDev" and one.attributes.get("name", "").startswith("nvml")
    }
    ends = _words(matrix, "indexes")
    values = [int(one) for one in _words(matrix, "u64values")]
    gpus = [(row, names[end]) for row, end in enumerate(ends) if end in names]
    switches = [row for row, end in enumerate(ends) if end.startswith("PCIDev:")]
    found = {}
    for row, first in gpus:
        for column, second in gpus:
            rate = values[row * len(ends) + column]
            if first < second and rate:
                each = 25_000 if rate % 25_000 == 0 else _LINK_RATE
                found[first, second] = f"NV{max(1, round(rate / each))}"
            elif first < second and any(
                values[row * len(ends) + s] and values[column * len(ends) + s] for s in switches
            ):
                found[first, second] = "NVSwitch"
    return found


def _distances(root: _Element) -> dict[tuple[int, int], int]:
    for one in root.walk():
        if one.name == "distances2" and one.type == "NUMANode":
            numbers = [int(index) for index in _words(one, "indexes")]
            values = [int(value) for value in _words(one, "u64values")]
            pairs = [(first, second) for first in numbers for second in numbers]
            return dict(zip(pairs, values, strict=True))
    return {}


def _words(element: _Element, name: str) -> list[str]:
    return [word for one in element.children if one.name == name for word in one.text.split()]


def _cpuset(text: str) -> tuple[int, ...]:
    """Read a bitmap in groups of 32 bits, the highest first."""
    bits = 0
    for group in text.split(","):
        bits = bits << 32 | (int(group, 16) if group.strip() else 0)
    return tuple(index for index in range(bits.bit_length()) if bits >> index & 1)
