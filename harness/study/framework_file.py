"""The tables of an adapter's ``<name>.toml``; docs/adding-a-framework.md describes every key."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from harness.study.framework_variables import RankText, Variable, Variables
from harness.toml.tables import Listed, Seconds, Table


class OptionTable(Table):
    """One of the adapter's own options."""

    type: Literal["choice", "flag", "count", "number", "name"]
    """What its values are."""
    meaning: str = Field(min_length=1)
    """What it does, in a few words."""
    default: str | int | float | bool | None = None
    """The value where a study says nothing."""
    allowed: Listed[str | int] = ()
    """The values of a choice."""


class RequirementTable(Table):
    """What a platform must offer when a cell has certain factors."""

    when: dict[str, Any] = Field(default_factory=dict)
    """Factors and the value, or values, that this is about."""
    needs: str
    """An expression, for example "gpus >= 1"."""
    why: str = Field(min_length=1)
    """The reason, as the plan prints it."""


class Lack(Table):
    """What of a network a framework has no lowering for; a plan says it before anything starts."""

    network: str = Field(min_length=1)
    """A layer's class, "volumes", "groups" or "sequences", or the name of a workload."""
    device: str | None = None
    """The device that this is about; if not given, all."""
    compile: bool | None = None
    """Whether it is about compiled steps; if not given, about all."""
    why: str = Field(min_length=1)
    """The reason, as the plan prints it."""


class Difference(Table):
    """What a framework computes otherwise than the vocabulary says, and does so knowingly."""

    tensors: str
    """A pattern of names, as an examination gives them, for example "*/variance"."""
    why: str = Field(min_length=1)
    """The difference, as reports print it."""


class Strategy(Table):
    """A way to train on several ranks, and what it needs."""

    same_as: str | None = None
    """The framework whose strategy of this name is described already, and equal."""
    environment: str | None = None
    """The variant of the framework's environment that it needs; if not given, its own serves."""
    several_devices: bool = False
    """Whether one rank can drive several devices."""
    meets_over_mpi: bool = False
    """Whether ranks that an MPI started meet over it: its variables are left out then."""
    heartbeats: bool = False
    """Whether its ranks give each other up when they stand still: such trials take no turns."""
    sync_batch_norm: bool = False
    """Whether a batch norm normalises the batch of all ranks, not each rank's own part of it."""
    accumulates: bool = False
    """Whether gradients of micro-batches are added up before ranks exchange them, once a step."""
    divides_state: bool = False
    """Whether ranks hold parts of weights and of what the optimiser keeps, not all of it each."""
    variables: Variables = Field(default_factory=Variables)
    """Environment variables beside the framework's own."""
    without_peer: dict[Literal["cpu", "gpu"], dict[Variable, RankText]] = Field(
        default_factory=dict
    )
    """By device, variables that keep those of a node from exchanging directly (peer = false)."""


class Reader(Table):
    """One of the framework's own readers of files, and its limits."""

    formats: Listed[str] = ()
    """The formats that it reads; if none is given, all."""
    decodes: Listed[str] = ()
    """Endings of the pictures that it decodes; if none is given, all that are found."""
    resizes: Literal["averaging", "between-neighbours"] = "averaging"
    """How it makes decoded pictures smaller: over all their pixels, or between the nearest two."""
    own_order: Listed[str] = ()
    """Formats whose samples come in an order of its own, the same for the same seed."""
    prefetch: int = Field(default=0, ge=0)
    """Batches that it reads ahead where a study says nothing."""


class FrameworkFile(Table):
    """An adapter's ``<name>.toml``."""

    name: str
    """The framework's name in studies; the file has the same name."""
    title: str
    """The name people know it by."""
    module: str
    """The module with ``open(job, place)``."""
    kinds: Listed[str]
    """Kinds of workload that it can run."""
    devices: Listed[Literal["cpu", "gpu"]]
    """Devices it can compute on."""
    distribution: str | None = None
    """The package whose version identifies it."""
    probe: bool = False
    """Whether a probe can say what really ran."""
    attributes: bool = False
    """Whether it can say which layer and pass takes which share of a step."""
    attributes_ranks: Listed[str] = ()
    """Strategies in which it says so of several ranks, and what of a step they exchange."""
    proves: bool = False
    """Whether what is timed has the doors through which it is examined."""
    computes: bool = True
    """Whether it computes anything; the gate examines no framework that does not."""
    steps_by_itself: bool = False
    """Whether its program has a loop of its own, which cannot be told to take turns."""
    start_up: Seconds = 5.0
    """A guess at the time until the first step, for the plan's estimate."""
    strategies: dict[str, Strategy] = Field(default_factory=dict)
    """Ways to train on several ranks, beside "none"."""
    factors: dict[str, Any] = Field(default_factory=dict)
    """Factors it carries out: a list of values, or "any"."""
    declines: dict[str, dict[str, str]] = Field(default_factory=dict)
    """By factor and value, or "any" it does not carry out, the reason that the plan prints."""
    defaults: dict[str, Any] = Field(default_factory=dict)
    """Its own defaults where they differ from the vocabulary's."""
    readers: dict[str, Reader] = Field(default_factory=dict)
    """Its own readers of files, where not everything can be asked of them."""
    options: dict[str, OptionTable] = Field(default_factory=dict)
    """Options that only this adapter has."""
    groups: dict[str, str | dict[str, str]] = Field(default_factory=dict)
    """Groups of packages that its environment needs where a factor is set, or has a value."""
    variables: Variables = Field(default_factory=Variables)
    """Environment variables that it reads."""
    requires: Listed[RequirementTable] = ()
    """What platforms must offer."""
    differs: Listed[Difference] = ()
    lacks: Listed[Lack] = ()
    """Named differences: the gate ranks such cells with a mark."""
