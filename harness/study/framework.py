"""Read what adapters say of themselves in ``<name>.toml``; plans import no adapter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from harness import plugins
from harness.errors import UsageError, nearest
from harness.study.factors import FACTORS, Factor
from harness.study.requirements import Requirement, parse_needs
from harness.toml.document import Document, read_document
from harness.toml.tables import Listed, Seconds, Table, check, unknown_key
from harness.toml.values import Value, shown

ANY = "any"


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


class DifferenceTable(Table):
    """What a framework computes otherwise than the vocabulary says, and does so knowingly."""

    tensors: str
    """A pattern of names, as an examination gives them, for example "*/variance"."""
    why: str = Field(min_length=1)
    """The difference, as reports print it."""


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
    strategies: Listed[str] = ("none",)
    """Ways to train on several ranks."""
    distribution: str | None = None
    """The package whose version identifies it."""
    probe: bool = False
    """Whether a probe can say what really ran."""
    start_up: Seconds = 5.0
    """A guess at the time until the first step, for the plan's estimate."""
    factors: dict[str, Any] = Field(default_factory=dict)
    """Factors it carries out: a list of values, or "any"."""
    defaults: dict[str, Any] = Field(default_factory=dict)
    """Its own defaults where they differ from the vocabulary's."""
    options: dict[str, OptionTable] = Field(default_factory=dict)
    """Options that only this adapter has."""
    groups: dict[str, str | dict[str, str]] = Field(default_factory=dict)
    """Groups of packages that its environment needs where a factor is set, or has a value."""
    requires: Listed[RequirementTable] = ()
    """What platforms must offer."""
    differs: Listed[DifferenceTable] = ()
    """Named differences: the gate ranks such cells with a mark."""


@dataclass(frozen=True)
class Difference:
    """Tensors that a framework computes otherwise, knowingly, and how."""

    tensors: str
    why: str


@dataclass(frozen=True)
class FrameworkInfo:
    """A framework as a plan knows it."""

    name: str
    title: str
    module: str
    kinds: tuple[str, ...]
    devices: tuple[str, ...]
    strategies: tuple[str, ...]
    distribution: str | None
    has_probe: bool
    start_up_s: float
    factors: Mapping[str, tuple[Value, ...] | None]
    """Allowed values; None: any value of the factor's type."""
    defaults: Mapping[str, Value]
    options: Mapping[str, Factor]
    groups: Mapping[str, str | Mapping[str, str]]
    """Factor -> group of the environment's lock; or factor -> value -> group."""
    requires: tuple[Requirement, ...]
    differs: tuple[Difference, ...]
    path: Path

    def default(self, factor: str) -> Value:
        """Give the value of a factor that no study mentions."""
        return self.defaults.get(factor, FACTORS[factor].default)

    def refuses(self, factor: str, value: Value) -> str | None:
        """Say why this framework cannot do what a factor asks, or None."""
        if factor == "strategy":
            allowed: tuple[Value, ...] | None = self.strategies
        elif factor == "device":
            allowed = self.devices
        elif not FACTORS[factor].framework:
            return None
        else:
            allowed = self.factors.get(factor, (self.default(factor),))
        if allowed is None or value in allowed or value == self.default(factor):
            return None
        offers = ", ".join(_plain(one) for one in allowed if one is not None)
        only = f" (it has: {offers})" if offers else ""
        return f"{self.name} does not offer {factor} {_plain(value)}{only}"


def framework_names() -> tuple[str, ...]:
    """Name every framework that has an adapter, without reading their files."""
    return tuple(sorted(plugins.adapter_files()))


@cache
def framework_info(name: str) -> FrameworkInfo:
    """Read what one framework can do."""
    files = plugins.adapter_files()
    if name not in files:
        known = ", ".join(sorted(files))
        raise UsageError(
            f"no framework is called '{name}'.{nearest(name, files)}\n    Known: {known}."
        )
    return read_framework(files[name])


def read_framework(path: Path) -> FrameworkInfo:
    """Read one adapter's file, refusing all its faults together."""
    document = read_document(path)
    file = check(document, FrameworkFile, document.data)
    _check_names(document, path)
    factors = {
        name: _values(document, name, raw) for name, raw in _table(document, "factors").items()
    }
    options = {
        name: _option(document, name, raw) for name, raw in _table(document, "options").items()
    }
    requires = [_requirement(document, index) for index in range(_length(document, "requires"))]
    document.refuse_faults()
    assert file is not None, "a file without faults has its value"
    return FrameworkInfo(
        name=file.name,
        title=file.title,
        module=file.module,
        kinds=file.kinds,
        devices=file.devices,
        strategies=file.strategies,
        distribution=file.distribution,
        has_probe=file.probe,
        start_up_s=file.start_up,
        factors=factors,
        defaults=dict(file.defaults),
        options={name: option for name, option in options.items() if option is not None},
        groups=dict(file.groups),
        requires=tuple(one for one in requires if one is not None),
        differs=tuple(Difference(one.tensors, one.why) for one in file.differs),
        path=path,
    )


def check_value(
    document: Document, place: tuple[str | int, ...], factor: Factor, value: Any
) -> None:
    """Tell a document when a value cannot be one of a factor's, or of an option's."""
    wrong = factor.wrong(value)
    if wrong is not None:
        document.fault(place, wrong)
    elif factor.allowed and value not in factor.allowed:
        allowed = tuple(map(str, factor.allowed))
        hint = nearest(str(value), allowed)
        document.fault(place, f"{shown(value)} is no value of {factor.name}.{hint}", allowed)


def _table(document: Document, name: str) -> dict[str, Any]:
    """Give a table even where the rest of the file is wrong, so that all faults come together."""
    value = document.data.get(name)
    return value if isinstance(value, dict) else {}


def _length(document: Document, name: str) -> int:
    value = document.data.get(name)
    return len(value) if isinstance(value, list) else 0


def _check_names(document: Document, path: Path) -> None:
    name = document.data.get("name")
    if isinstance(name, str) and name != path.stem:
        document.fault(("name",), f"'{name}' is not the file's name, '{path.stem}'")
    for index in range(_length(document, "strategies")):
        check_value(
            document,
            ("strategies", index),
            FACTORS["strategy"],
            document.data["strategies"][index],
        )
    for factor in _table(document, "groups"):
        _known(document, ("groups", factor), factor)
    for factor, value in _table(document, "defaults").items():
        if _known(document, ("defaults", factor), factor):
            check_value(document, ("defaults", factor), FACTORS[factor], value)


def _values(document: Document, name: str, raw: Any) -> tuple[Value, ...] | None:
    place = ("factors", name)
    if not _known(document, place, name):
        return None
    if name in _ELSEWHERE:
        document.fault(place, f"stands in '{_ELSEWHERE[name]}'")
    elif not FACTORS[name].framework:
        document.fault(place, "is carried out by the harness, not by frameworks; leave it out")
    elif raw == ANY:
        return None
    elif not isinstance(raw, list) or not raw:
        document.fault(place, 'must be a list of values, or "any"')
    else:
        for index, value in enumerate(raw):
            check_value(document, (*place, index), FACTORS[name], value)
        return tuple(raw)
    return None


_ELSEWHERE = {"device": "devices", "strategy": "strategies"}


def _known(document: Document, place: tuple[str | int, ...], name: str) -> bool:
    if name in FACTORS:
        return True
    document.fault(place, *unknown_key(name, tuple(FACTORS)))
    return False


def _option(document: Document, name: str, raw: Any) -> Factor | None:
    place = ("options", name)
    if name in FACTORS:
        document.fault(place, "has the name of a factor that all frameworks share")
    table = check(document, OptionTable, raw, place)
    if table is None:
        return None
    option = Factor(name, table.type, table.default, table.meaning, table.allowed)
    if option.type == "choice" and not option.allowed:
        document.fault(place, "a choice needs 'allowed'")
    if option.default is not None:
        check_value(document, (*place, "default"), option, option.default)
    return option


def _requirement(document: Document, index: int) -> Requirement | None:
    place = ("requires", index)
    table = check(document, RequirementTable, document.data["requires"][index], place)
    if table is None:
        return None
    when = []
    for name, raw in table.when.items():
        if _known(document, (*place, "when", name), name):
            values = raw if isinstance(raw, list) else [raw]
            for value in values:
                check_value(document, (*place, "when", name), FACTORS[name], value)
            when.append((name, tuple(values)))
    try:
        return Requirement(tuple(when), parse_needs(table.needs), table.why)
    except ValueError as error:
        document.fault((*place, "needs"), str(error))
        return None


def _plain(value: Value) -> str:
    return shown(value).strip("'")
