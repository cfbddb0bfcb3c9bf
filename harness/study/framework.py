"""Read what adapters say of themselves in ``<name>.toml``; plans import no adapter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from harness import plugins
from harness.errors import BakeoffError, UsageError, nearest
from harness.study.factor_checks import check_value, is_known
from harness.study.factors import FACTORS, Factor
from harness.study.framework_file import (
    Difference,
    FrameworkFile,
    Lack,
    OptionTable,
    Reader,
    RequirementTable,
    Strategy,
)
from harness.study.framework_variables import Variables
from harness.study.requirements import Requirement, parse_needs
from harness.toml.document import Document, read_document
from harness.toml.tables import check
from harness.toml.values import Value, shown

ANY = "any"
ALONE = "none"
"""The strategy of a rank that trains alone, which every framework has."""
_ELSEWHERE = {"device": "devices", "strategy": "strategies"}


@dataclass(frozen=True)
class FrameworkInfo:
    """A framework as a plan knows it."""

    name: str
    title: str
    module: str
    kinds: tuple[str, ...]
    devices: tuple[str, ...]
    strategies: Mapping[str, Strategy]
    distribution: str | None
    has_probe: bool
    attributes: bool
    attributes_ranks: tuple[str, ...]
    proves: bool
    computes: bool
    steps_by_itself: bool
    start_up_s: float
    factors: Mapping[str, tuple[Value, ...] | None]
    """Allowed values; None: any value of the factor's type."""
    declines: Mapping[str, Mapping[str, str]]
    """By factor and value, why it does not carry a value out."""
    defaults: Mapping[str, Value]
    options: Mapping[str, Factor]
    readers: Mapping[str, Reader]
    groups: Mapping[str, str | Mapping[str, str]]
    """Factor -> group of the environment's lock; or factor -> value -> group."""
    variables: Variables
    requires: tuple[Requirement, ...]
    differs: tuple[Difference, ...]
    lacks: tuple[Lack, ...]
    path: Path

    def default(self, factor: str) -> Value:
        """Give the value of a factor that no study mentions."""
        return self.defaults.get(factor, FACTORS[factor].default)

    def strategy(self, name: str) -> Strategy:
        """Give what a strategy needs; nothing where it is not offered."""
        return self.strategies.get(name, Strategy())

    def reader(self, name: Value) -> Reader:
        """Give the limits of a reader; those that all frameworks share have none."""
        return self.readers.get(str(name), Reader())

    def rank_variables(
        self, strategy: str, factors: Mapping[str, Any], *, has_mpi: bool = False
    ) -> Variables:
        """Give the variables of ranks that train by a strategy; an MPI started them, or not."""
        own, apart = self.strategy(strategy), Variables()
        if factors.get("peer") is False:
            apart = Variables(every_rank=own.without_peer.get(factors["device"], {}))
        if own.meets_over_mpi and has_mpi:
            return self.variables.plus(apart)
        return self.variables.plus(own.variables).plus(apart)

    def refuses(self, factor: str, value: Value) -> str | None:
        """Say why this framework cannot do what a factor asks, or None."""
        if factor == "strategy":
            allowed: tuple[Value, ...] | None = tuple(self.strategies)
        elif factor == "device":
            allowed = self.devices
        elif not FACTORS[factor].framework:
            return None
        else:
            allowed = self.factors.get(factor, (self.default(factor),))
        declined = {**self.declines.get(factor, {}), **FACTORS[factor].declined}
        if str(value) in declined:
            return declined[str(value)]
        if allowed is None or value in allowed or value == self.default(factor):
            return None
        if ANY in declined:
            return declined[ANY]
        asked, *others = (shown(one).strip("'") for one in (value, *allowed) if one is not None)
        offers = ", ".join(others)
        only = f" (it has: {offers})" if offers else ""
        return f"{self.name} does not offer {factor} {asked}{only}"


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


def known_strategies() -> tuple[str, ...]:
    """Name the strategies of all frameworks; one whose file is wrong has none."""
    found = [ALONE]
    for name in framework_names():
        try:
            found += framework_info(name).strategies
        except BakeoffError:
            continue  # whoever asks for that framework is told
    return tuple(dict.fromkeys(found))


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
    listed = document.data.get("requires")
    count = len(listed) if isinstance(listed, list) else 0
    requires = [_requirement(document, index) for index in range(count)]
    strategies = _strategies(document, file) if file is not None else {}
    document.refuse_faults()
    assert file is not None, "a file without faults has its value"
    return FrameworkInfo(
        name=file.name,
        title=file.title,
        module=file.module,
        kinds=file.kinds,
        devices=file.devices,
        strategies=strategies,
        distribution=file.distribution,
        has_probe=file.probe,
        attributes=file.attributes,
        attributes_ranks=file.attributes_ranks,
        proves=file.proves,
        computes=file.computes,
        steps_by_itself=file.steps_by_itself,
        start_up_s=file.start_up,
        factors=factors,
        declines=file.declines,
        defaults=dict(file.defaults),
        options={name: option for name, option in options.items() if option is not None},
        readers=file.readers,
        groups=dict(file.groups),
        variables=file.variables,
        requires=tuple(one for one in requires if one is not None),
        differs=file.differs,
        lacks=file.lacks,
        path=path,
    )


def _table(document: Document, name: str) -> dict[str, Any]:
    """Give a table even where the rest of the file is wrong, so that all faults come together."""
    value = document.data.get(name)
    return value if isinstance(value, dict) else {}


def _check_names(document: Document, path: Path) -> None:
    name = document.data.get("name")
    if isinstance(name, str) and name != path.stem:
        document.fault(("name",), f"'{name}' is not the file's name, '{path.stem}'")
    for reader in _table(document, "readers"):
        _check_offered(document, ("readers", reader), "reader", reader)
    for factor in _table(document, "groups"):
        is_known(document, ("groups", factor), factor)
    for factor, values in _table(document, "declines").items():
        if is_known(document, ("declines", factor), factor):
            for value in values if isinstance(values, dict) else ():
                if value != ANY:
                    check_value(document, ("declines", factor, value), FACTORS[factor], value)
    for factor, value in _table(document, "defaults").items():
        if is_known(document, ("defaults", factor), factor):
            check_value(document, ("defaults", factor), FACTORS[factor], value)


def _values(document: Document, name: str, raw: Any) -> tuple[Value, ...] | None:
    place = ("factors", name)
    if not is_known(document, place, name):
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
            if value in FACTORS[name].declined:
                document.fault((*place, index), FACTORS[name].declined[value])
        return tuple(raw)
    return None


def _strategies(document: Document, file: FrameworkFile) -> dict[str, Strategy]:
    for number, name in enumerate(file.attributes_ranks):
        _check_offered(document, ("attributes_ranks", number), "strategy", name)
    found = {ALONE: Strategy(), **file.strategies}
    for name, own in file.strategies.items():
        place = ("strategies", name, "same_as")
        if own.same_as is not None and own.model_fields_set != {"same_as"}:
            document.fault(place, "the rest of the table stands there; leave it out here")
        elif own.same_as is not None:
            try:
                found[name] = framework_info(own.same_as).strategies[name]
            except KeyError:
                document.fault(place, f"{own.same_as} has no strategy '{name}'")
            except BakeoffError as error:
                document.fault(place, str(error))
    return found


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
        if is_known(document, (*place, "when", name), name):
            values = raw if isinstance(raw, list) else [raw]
            for value in values:
                check_value(document, (*place, "when", name), FACTORS[name], value)
                _check_offered(document, (*place, "when", name), name, value)
            when.append((name, tuple(values)))
    try:
        return Requirement(tuple(when), parse_needs(table.needs), table.why)
    except ValueError as error:
        document.fault((*place, "needs"), str(error))
        return None


def _check_offered(
    document: Document, place: tuple[str | int, ...], factor: str, value: Value
) -> None:
    """Refuse a requirement of a strategy or a reader that the file itself does not offer."""
    if factor == "strategy":
        offered: Any = (ALONE, *_table(document, "strategies"))
    elif factor == "reader":
        offered = _table(document, "factors").get("reader")
    else:
        return
    if isinstance(offered, list | tuple) and value not in offered:
        hint = nearest(str(value), offered)
        document.fault(place, f"{shown(value)} is not offered here.{hint}", offered)
