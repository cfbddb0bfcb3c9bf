"""How ranks start on a platform: what starts them, on which CPUs, with which Python."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from harness.toml.tables import Listed, Table


class Launcher(Table):
    """What starts the ranks."""

    name: str = "local"
    settings: dict[str, str] = Field(default_factory=dict)
    """Its own settings: partition, account, constraint …"""


class Binding(Table):
    """How ranks are laid on CPUs."""

    policy: Literal["compact", "spread", "none"] = "compact"
    """Neighbouring ranks fill a NUMA node before the next, or are dealt out over all; "none" lets
    every rank run anywhere."""
    threads: Literal["free", "pinned"] = "free"
    """Whether each thread keeps to a core within its rank's share (OMP_PLACES, KMP_AFFINITY …)."""
    hyper_threads: bool = True
    """Use every hardware thread of a core, or one."""
    memory: Literal["any", "local", "fast-first", "fast-only", "interleave"] = "any"
    """From where ranks allocate: the kernel's choice, their NUMA node, MCDRAM or HBM (with or
    without falling back to slow memory), or all in turn."""
    oversubscribe: bool = False
    """Let ranks share CPUs with each other or with the observer; their trials are marked."""


class Observer(Table):
    """CPUs kept for the agent of each node."""

    cores: Annotated[int, Field(ge=0)] = 1
    rates: dict[str, Annotated[float, Field(ge=0)]] = Field(default_factory=dict)
    """Readings per second by source ("processor", "nvml" …; "all" is every one); 0 is off."""


class Container(Table):
    """An image that a framework runs in."""

    engine: Literal[
        "apptainer", "singularity", "docker", "podman", "charliecloud", "bwrap", "pyxis"
    ]
    image: str
    """What the engine calls it: a file, a name with its tag or digest, or a root's folder."""
    interpreter: str = "python3"
    """The Python inside that has the framework."""
    binds: Listed[str] = ()
    """Further folders: "/host", "/host:/inside" or "/host:/inside:rw"."""
    host_mpi: str | None = None
    """The prefix of an MPI of the host's, to be used inside."""


class FrameworkThere(Table):
    """Where a framework lives on this platform, if not in an environment of Bakeoff's own."""

    interpreter: str | None = None
    modules: Listed[str] = ()
    environment: dict[str, str] = Field(default_factory=dict)
    container: Container | None = None
