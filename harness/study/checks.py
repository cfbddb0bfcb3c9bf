"""Check that a study's names and values mean something: factors, options, members."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness import plugins
from harness.errors import BakeoffError, FaultyFile, UsageError, nearest
from harness.study.factor_checks import check_value
from harness.study.factors import FACTORS, Factor
from harness.study.framework import (
    FrameworkInfo,
    framework_info,
    framework_names,
    known_strategies,
)
from harness.study.matrix import Selection, adapter_of, flattened
from harness.toml.document import Document, Place
from harness.toml.tables import unknown_key
from harness.toml.values import Value, shown

NEEDED = ("workload", "framework")

_MOST_DIGITS = 18  # of a number on the command line: more are no count of anything


class Checker:
    """Check factor tables of one document, telling it every fault."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.workloads = plugins.workload_names()
        self.frameworks = framework_names()

    def study(self, data: Any, at: Place = ()) -> None:
        """Check what a study, or one of its sizes, varies; shapes were checked before."""
        if not isinstance(data, dict):
            return
        for name in [one for one in data if one in FACTORS]:  # though it stands where none belongs
            self._values(FACTORS[name], data[name], (*at, name), lists=True)
        self.factors(data.get("matrix"), (*at, "matrix"), lists=True)
        for index, table in _tables(data.get("zip")):
            self.factors(table, (*at, "zip", index), lists=True)
            self._zip(table, (*at, "zip", index))
        for index, table in _tables(data.get("include")):
            self.factors(table, (*at, "include", index), lists=False)
            for name in NEEDED:
                if name not in table:
                    self.document.fault((*at, "include", index), f"needs a {name}")
        for index, table in _tables(data.get("exclude")):
            self._exclude(table, (*at, "exclude", index))
        for index, table in _tables(data.get("finding")):
            for side in ("of", "over"):
                self.factors(table.get(side), (*at, "finding", index, side), lists=True)
        defaults = data.get("defaults")
        if isinstance(defaults, dict):
            self._defaults(defaults, (*at, "defaults"))
        measure = data.get("measure")
        if isinstance(measure, dict):
            self.factors(measure.get("reference"), (*at, "measure", "reference"), lists=False)

    def whole(self, data: dict[str, Any]) -> None:
        """Check what only shows when a study's parts are put together."""
        matrix = data.get("matrix")
        varied: dict[str, Place] = {}
        if isinstance(matrix, dict):
            varied = {name: ("matrix", name) for name in matrix}
        for index, table in _tables(data.get("zip")):
            for name in table:
                if name in varied:
                    where = "[matrix]" if varied[name][0] == "matrix" else "another [[zip]]"
                    self.document.fault(("zip", index, name), f"is in {where} already")
                varied.setdefault(name, ("zip", index, name))
        if varied or not _tables(data.get("include")):
            for name in NEEDED:
                if name not in varied:
                    self.document.fault(("matrix",), f"needs a {name}")
        if "batch" in varied and "global_batch" in varied:
            self.document.fault(varied["global_batch"], "give batch or global_batch, not both")
        platform = data.get("platform")
        if isinstance(platform, str):
            files = plugins.platform_files(Path(self.document.file).parent)
            if platform not in files and not platform.endswith(".toml"):
                hint = nearest(platform, files)
                self.document.fault(
                    ("platform",), f"no platform is called '{platform}'.{hint}", sorted(files)
                )

    def factors(self, table: Any, at: Place, *, lists: bool) -> None:
        """Check a table of factors and options: names, types, values, nothing twice."""
        if not isinstance(table, dict):
            return
        for name, value in table.items():
            place = (*at, name)
            if isinstance(value, dict) and name not in FACTORS:
                self._options(name, value, place, lists=lists)
            elif name not in FACTORS:
                message, allowed = unknown_key(name, tuple(FACTORS))
                self.document.fault(place, message, allowed)
            else:
                self._values(FACTORS[name], value, place, lists=lists)
        if "batch" in table and "global_batch" in table:
            self.document.fault((*at, "global_batch"), "give batch or global_batch, not both")

    def _values(self, factor: Factor, value: Any, place: Place, *, lists: bool) -> None:
        if not isinstance(value, list):
            self._value(factor, value, place)
            return
        if not lists:
            self.document.fault(place, "must be one value here, not a list")
            return
        if not value:
            self.document.fault(place, "must be a list with something in it")
        for index, one in enumerate(value):
            if place[-3:-2] != ("zip",) and any(
                one == other and type(one) is type(other) for other in value[:index]
            ):
                self.document.fault((*place, index), f"{shown(one)} is listed twice")
            else:
                self._value(factor, one, (*place, index))

    def _value(self, factor: Factor, value: Any, place: Place) -> None:
        check_value(self.document, place, factor, value)
        if isinstance(value, str) and factor.name == "workload":
            self._workload(value, place)
        elif isinstance(value, str) and factor.name == "framework":
            self._framework(value, place)
        elif isinstance(value, str) and factor.name == "strategy":
            self._member("strategy", value, value, known_strategies(), place)

    def _workload(self, value: str, place: Place) -> None:
        network, is_of_layer, _ = value.partition("/")
        if self._member("workload", network, value, self.workloads, place) and is_of_layer:
            try:
                plugins.workload(value)
            except BakeoffError as error:
                self.document.fault(place, str(error))

    def _framework(self, value: str, place: Place) -> None:
        name = adapter_of(value)
        if self._member("framework", name, value, self.frameworks, place):
            self._info(name, place)

    def _member(
        self, what: str, name: str, spelt: str, known: tuple[str, ...], place: Place
    ) -> bool:
        if name in known:
            return True
        hint = nearest(name, known)
        self.document.fault(place, f"no {what} is called '{spelt}'.{hint}", known)
        return False

    def _info(self, name: str, place: Place) -> FrameworkInfo | None:
        try:
            return framework_info(name)
        except FaultyFile as error:
            self.document.faults += [one for one in error.faults if one not in self.document.faults]
        except BakeoffError as error:
            self.document.fault(place, str(error))
        return None

    def _options(self, name: str, table: dict[str, Any], place: Place, *, lists: bool) -> None:
        if name not in self.frameworks:
            hint = nearest(name, self.frameworks) or nearest(name, FACTORS)
            message = f"neither a factor nor a framework is called '{name}'.{hint}"
            self.document.fault(place, message, () if hint else self.frameworks)
            return
        info = self._info(name, place)
        if info is None:
            return
        for option, value in table.items():
            if option in info.options:
                self._values(info.options[option], value, (*place, option), lists=lists)
            else:
                hint = nearest(option, info.options)
                self.document.fault(
                    (*place, option),
                    f"{name} has no option '{option}'.{hint}",
                    () if hint else sorted(info.options),
                )

    def _zip(self, table: dict[str, Any], at: Place) -> None:
        lengths = {}
        for name, value in flattened(table).items():
            if isinstance(value, list):
                lengths[name] = len(value)
            else:
                place = (*at, *name.split("."))
                self.document.fault(place, "must be a list, as long as the others beside it")
        if len(set(lengths.values())) > 1:
            sizes = ", ".join(f"{name} has {length}" for name, length in lengths.items())
            self.document.fault(at, f"its lists must be equally long: {sizes}")

    def _exclude(self, table: dict[str, Any], at: Place) -> None:
        why = table.get("why")
        if why is None:
            self.document.fault(
                at, "needs a 'why': the reason stands beside the hole in every report"
            )
        elif not isinstance(why, str) or not why.strip():
            self.document.fault((*at, "why"), "must be the reason, in a sentence")
        rest = {name: value for name, value in table.items() if name != "why"}
        if not rest:
            self.document.fault(at, "names no factor, so it would leave out everything")
        self.factors(rest, at, lists=True)

    def _defaults(self, defaults: dict[str, Any], at: Place) -> None:
        for kind, known in (("workload", self.workloads), ("framework", self.frameworks)):
            tables = defaults.get(kind)
            for name, table in tables.items() if isinstance(tables, dict) else ():
                place = (*at, kind, name)
                if not self._member(kind, adapter_of(name), name, known, place):
                    continue
                self.factors(table, place, lists=False)
                for factor in NEEDED:
                    if isinstance(table, dict) and factor in table:
                        self.document.fault((*place, factor), "has no default")


def selection_from_text(text: str) -> Selection:
    """Read what ``--only`` says: ``framework=torch,jax``."""
    name, equals, words = text.partition("=")
    name = name.strip()
    if not (equals and words.strip()):
        raise UsageError(f"--only {text}: write it as FACTOR=VALUE, for example framework=torch")
    if name not in FACTORS and "." not in name:
        raise UsageError(f"--only {text}: no factor is called '{name}'.{nearest(name, FACTORS)}")
    return Selection({name: tuple(_word(word.strip()) for word in words.split(","))})


def _word(word: str) -> Value:
    if word in ("true", "false"):
        return word == "true"
    is_number = word.isascii() and word.isdigit() and len(word) <= _MOST_DIGITS
    return int(word) if is_number else word.strip("'\"")


def _tables(value: Any) -> list[tuple[int, dict[str, Any]]]:
    if not isinstance(value, list):
        return []
    return [(index, one) for index, one in enumerate(value) if isinstance(one, dict)]
