"""Resolve a point of a matrix: give every factor its value, or the reason why it cannot run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from harness import plugins
from harness.data.user_data import UserData
from harness.errors import nearest
from harness.plan.cell import Cell, cell_key
from harness.plan.rules import (
    accumulation_rules,
    attention_rules,
    checkpoint_rules,
    message_rules,
    network_rules,
    platform_rules,
    recompute_rules,
    sequence_rules,
    state_rules,
    strategy_rules,
    stripe_rules,
)
from harness.plan.rules.input_rules import complete, content_of
from harness.plan.rules.input_rules import why_not as why_no_input
from harness.platform.platform import Platform
from harness.study.factors import FACTORS, IN_CELL, OF_INPUT
from harness.study.framework import FrameworkInfo, framework_info
from harness.study.matrix import Matrix, Point, adapter_of, selectable
from harness.study.measure import Measure
from harness.toml.values import Value
from harness.worker.input.files import samples_of
from harness.worker.network import shapes
from harness.worker.network.workload import (
    Checkpointing,
    LayerAlone,
    Opening,
    Reading,
    Training,
)
from harness.worker.scale import Scale

RESOLVED = (*IN_CELL, "strategy")


@dataclass(frozen=True)
class Resolved:
    """A point with all its factors, and why it cannot run, if so."""

    workload: str
    framework: str
    factors: Mapping[str, Value]
    scale: Scale | None
    """None where the global batch does not divide."""
    options: Mapping[str, Value]
    key: str
    why: str | None
    silent: frozenset[str] = frozenset()
    """Factors at their defaults that have no meaning for work of this kind."""

    def stated_factors(self) -> dict[str, Value]:
        """Give the factors as a cell holds them: None for those without a meaning for its work."""
        return {name: None if name in self.silent else one for name, one in self.factors.items()}

    def everything(self) -> dict[str, Value]:
        """Give all names and values that a selection may test."""
        return selectable(self.workload, self.framework, self.factors, self.options)


@dataclass(frozen=True)
class Subject:
    """A workload with what is counted once for all its cells."""

    value: Any
    module: str
    identity: str


@cache
def subject(name: str, sequence: int | None = None) -> Subject:
    """Load a workload, at a length where it is fed texts, and digest what it is."""
    value = plugins.workload(name, {"sequence": sequence})
    module = plugins.workload_module(name)
    if isinstance(value, Training):
        identity = shapes.count(value.network).identity
    elif isinstance(value, LayerAlone):
        whole = shapes.count(value.training.network).identity
        identity = f"{value.kind} {whole} {value.passes} {'whole' if value.to_input else 'first'}"
    elif isinstance(value, Checkpointing):
        identity = f"{value.kind} {shapes.count(value.training.network).identity}"
    else:
        reads = isinstance(value, Opening | Reading)
        identity = f"{value.kind} {value.content}" if reads else value.kind
    return Subject(value, module, identity)


class Resolver:
    """Resolve points against a study's defaults, a platform and a protocol."""

    def __init__(
        self, matrix: Matrix, platform: Platform, measure: Measure, own: UserData | None = None
    ) -> None:
        self._matrix = matrix
        self._own = own
        self._platform = platform
        self._measure = measure
        self._offers = platform.offers()
        self._environments = {*plugins.environment_names(), *platform.frameworks}
        self._defaults: dict[tuple[str, str], dict[str, Value]] = {}

    def resolve(self, point: Point) -> Resolved:
        """Give a point its factors, options and key."""
        workload, framework = str(point["workload"]), str(point["framework"])
        info = framework_info(adapter_of(framework))
        asked = {**self._defaults_of(workload, framework), **point}
        if "global_batch" in point:
            asked.pop("batch", None)
        elif "batch" in point:
            asked.pop("global_batch", None)
        factors = {name: asked.get(name, info.default(name)) for name in RESOLVED}
        if factors["layout"] == FACTORS["layout"].default:
            factors["layout"] = info.default("layout")
        scale, why = _scale(factors)
        sequence_rules.complete(workload, factors)
        attention_rules.complete(workload, info, factors)
        too_long = sequence_rules.why_not(workload, factors)
        work = subject(workload) if too_long else _subject(workload, factors)
        complete(work.value, info, factors, self._own)
        checkpoint_rules.complete(work.value, factors)
        message_rules.complete(work.value, factors)
        prefix = f"{info.name}."
        options = {
            name: asked.get(prefix + name, option.default) for name, option in info.options.items()
        }
        changed_options = {
            name: one for name, one in options.items() if one != info.options[name].default
        }
        identity = work.identity
        if self._own is not None and content_of(work.value, factors) is not None:
            identity += f" own {self._own.digest}"
        stated = attention_rules.in_key(info, sequence_rules.in_key(workload, factors))
        key = cell_key(workload, identity, framework, stated, changed_options)
        if scale is not None:
            why = too_long or self._why_not(workload, framework, factors, scale)
        silent = frozenset(_silent(work.value, info, factors))
        return Resolved(workload, framework, factors, scale, options, key, why, silent)

    def cell(self, point: Resolved, name: str) -> Cell:
        """Make a cell of a point that can run."""
        work = _subject(point.workload, point.factors)
        info = framework_info(adapter_of(point.framework))
        training = work.value if isinstance(work.value, Training) else None
        content = content_of(work.value, point.factors)
        assert point.scale is not None, "what cannot run is no cell"
        factors: Mapping[str, Any] = point.factors
        return Cell(
            key=point.key,
            workload=point.workload,
            workload_module=work.module,
            framework=point.framework,
            adapter=info.name,
            adapter_module=info.module,
            environment=environment(point.framework, factors),
            strategy=factors["strategy"],
            factors=point.stated_factors(),
            scale=point.scale,
            options=point.options,
            label=name,
            unit=work.value.unit,
            parameters=training.parameters if training else None,
            macs=training.macs if training else None,
            epoch_samples=samples_of(factors) if content else _epoch_samples(training),
            content=content,
            own_data=str(self._own.folder) if self._own and content else None,
            own_files=str(self._own.root) if self._own and content else None,
            start_up_s=info.start_up_s,
        )

    def _defaults_of(self, workload: str, framework: str) -> dict[str, Value]:
        """Give the study's defaults for a workload and a framework; the workload's go first."""
        pair = (workload, framework)
        if pair not in self._defaults:
            by_framework = self._matrix.framework_defaults
            self._defaults[pair] = {
                **by_framework.get(adapter_of(framework), {}),
                **by_framework.get(framework, {}),
                **self._matrix.workload_defaults.get(workload, {}),
            }
        return self._defaults[pair]

    def _why_not(
        self, workload: str, framework: str, factors: dict[str, Value], scale: Scale
    ) -> str | None:
        info = framework_info(adapter_of(framework))
        kind = subject(workload).value.kind
        if kind not in info.kinds:
            runs = ", ".join(info.kinds)
            return f"{info.name} does not run workloads of kind {kind} (it runs: {runs})"
        for name in RESOLVED:
            refusal = info.refuses(name, factors[name])
            if refusal is not None:
                return refusal
        work = _subject(workload, factors).value
        reason = why_no_input(work, info, factors, self._platform, self._own, scale=scale)
        reason = reason or checkpoint_rules.why_not(work, factors, self._platform)
        reason = reason or stripe_rules.why_not(work, factors, self._own)
        reason = reason or message_rules.why_not(work, factors, scale)
        reason = reason or network_rules.why_not(work, info, factors)
        reason = reason or accumulation_rules.why_not(work, info, factors, scale)
        reason = reason or attention_rules.why_not(workload, factors)
        reason = reason or recompute_rules.why_not(work, factors)
        if reason is not None:
            return reason
        missing = self._no_environment(environment(framework, factors))
        if missing is not None:
            return missing
        known = {**self._offers, **factors, "workload": workload, "framework": framework}
        for requirement in info.requires:
            why = requirement.fails(known)
            if why is not None:
                return why
        why = strategy_rules.why_not(info, factors, scale=scale, kind=kind)
        why = why or state_rules.why_not(work, info, factors, self._platform, scale=scale)
        return why or platform_rules.why_not(
            framework, factors, scale=scale, platform=self._platform, measure=self._measure
        )

    def _no_environment(self, name: str) -> str | None:
        name = name.partition("[")[0]
        if "@" not in name or name in self._environments:
            return None
        hint = nearest(name, self._environments)
        return f"there is no environment called '{name}'.{hint} `bakeoff env list` names them"


def _subject(workload: str, factors: Mapping[str, Any]) -> Subject:
    return subject(workload, factors["sequence"])


def environment(framework: str, factors: Mapping[str, Value]) -> str:
    """Name the environment that ranks start in.

    Some strategies need a variant of their own; some factors need a group of packages more.
    """
    info = framework_info(adapter_of(framework))
    variant = info.strategy(str(factors["strategy"])).environment
    if variant is not None:
        return f"{info.name}@{variant}"
    wanted = set()
    for factor, group in info.groups.items():
        if isinstance(group, str):
            wanted |= {group} if factors[factor] is not None else set()
        else:
            value = str(factors[factor]).lower()  # true and false as TOML writes them
            wanted |= {group[value]} if value in group else set()
    groups = sorted(wanted)
    return f"{framework}[{','.join(groups)}]" if groups else framework


def _silent(workload: Any, info: FrameworkInfo, factors: dict[str, Value]) -> Iterator[str]:
    reads = content_of(workload, factors) is not None
    for name, value in factors.items():
        kinds = FACTORS[name].kinds
        is_idle = name in OF_INPUT and not reads
        if value == info.default(name) and (is_idle or (kinds and workload.kind not in kinds)):
            yield name


def _scale(factors: dict[str, Value]) -> tuple[Scale | None, str | None]:
    """Make the scale, or say why there is none; ``batch`` is then that of each device."""
    try:
        scale = Scale.of(factors)
    except ValueError as why:
        factors["batch"] = None
        return None, str(why)
    factors["batch"] = scale.batch_per_device
    return scale, None


def _epoch_samples(training: Training | None) -> int | None:
    return None if training is None else training.data.samples
