"""Make the plan: every cell in the order of running, and what was left out and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

from pydantic import ValidationError

from harness.data.user_data import UserData
from harness.errors import UsageError
from harness.plan import cell as cells
from harness.plan.cell import Cell
from harness.plan.holes import Choice, Hole, NothingLeft, choose, place_of_fault
from harness.plan.order import interleaved
from harness.plan.resolve import Resolved, Resolver
from harness.plan.rules.input_rules import held_in_buffers
from harness.platform.platform import Platform
from harness.stats.answers import FEWEST_BLOCKS
from harness.store.paths.run_format import VERSION
from harness.store.typed import read
from harness.study.factors import FACTORS, IN_CELL
from harness.study.matrix import Selection
from harness.study.measure import Measure
from harness.study.study import Study
from harness.toml.document import Place
from harness.toml.tables import STORED
from harness.toml.values import Value, shown
from harness.worker.network.workload import task
from harness.worker.redaction.redact import redact_values


@dataclass(frozen=True)
class Heading:
    """The study that a plan was made from."""

    name: str
    title: str
    question: str
    size: str | None
    only: tuple[str, ...]
    overrides: tuple[str, ...]


@dataclass(frozen=True)
class PlannedStudy:
    """A plan but for its platform, which has a reader of its own."""

    study: Heading
    cells: tuple[Cell, ...]
    holes: tuple[Hole, ...]
    reference: Mapping[str, str]
    """Task -> key of the cell that its others are compared with."""
    varied: tuple[str, ...]
    """The factors and options that differ between these cells."""
    order: tuple[tuple[str, int], ...]
    """(cell key, block) as they run; blocks count from 1, and block 0 is the pilot."""
    measure: Measure
    notes: tuple[str, ...]
    """What a person should know before running this."""


@dataclass(frozen=True)
class Plan(PlannedStudy):
    """All cells in run order, with the ones left out and why."""

    platform: Platform

    @cached_property
    def by_key(self) -> Mapping[str, Cell]:
        """The cells by their keys."""
        return {one.key: one for one in self.cells}

    def cell(self, key: str) -> Cell:
        """Give the cell of a key."""
        return self.by_key[key]


_NAMED = 6
"""Classes that a plan names."""


def make_plan(study: Study, platform: Platform, own: UserData | None = None) -> Plan:
    """Resolve a study's cells for a platform; refuse a study of which no cell can run.

    ``own`` is a user's data, which cells read in place of made data sets.
    """
    resolver = Resolver(study.matrix, platform, study.measure, own)
    choice = choose(study, resolver)
    runnable, left_out = choice.runnable, [one for one, _ in choice.left_out]
    varied = _varied(choice.named, [*runnable, *left_out])
    made = tuple(resolver.cell(one, _label(one, varied)) for one in runnable)
    holes = tuple(Hole(_label(one, varied), one.everything(), why) for one, why in choice.left_out)
    if not made:
        raise NothingLeft(study, holes, choice.selectable, _blamed(study, resolver, choice))
    notes = [
        f"exclude[{number}] leaves out nothing: no cell of this plan matches it."
        for number, count in enumerate(choice.matched)
        if count == 0 and not study.only
    ]
    notes += _oversubscribed(platform, made) + _own_data(own, made) + held_in_buffers(made, own)
    reference = _reference(study, runnable, left_out, notes)
    return Plan(
        study=Heading(
            name=study.name,
            title=study.title if own is None else f"{study.title} ({own})",
            question=study.question,
            size=study.size,
            only=tuple(text for text, _ in study.only),
            overrides=study.overrides,
        ),
        platform=platform,
        cells=made,
        holes=holes,
        reference=reference,
        varied=varied,
        order=interleaved(
            [one.key for one in made],
            trials=study.measure.looks[-1],
            seed=study.measure.seed,
            piloted=_piloted(study.measure, made, reference),
        ),
        measure=study.measure,
        notes=tuple(notes),
    )


def _own_data(own: UserData | None, made: Sequence[Cell]) -> list[str]:
    """Note how many cells read a user's own files; refuse a plan in which none does."""
    if own is None:
        return []
    count = sum(cell.own_data is not None for cell in made)
    if not count:
        raise UsageError(f"no cell of this plan reads files, so nothing would read {own}.")
    reads = f"{count} of {len(made)} cells read {own}, in place, and nothing is written there."
    if own.is_text or not any(cell.own_data and cell.macs for cell in made):
        return [reads]
    names, more = ", ".join(own.classes[:_NAMED]), " …" if len(own.classes) > _NAMED else ""
    return [reads, f"Trained on {len(own.classes)} classes, by folder: {names}{more}."]


def _oversubscribed(platform: Platform, made: Sequence[Cell]) -> list[str]:
    """Warn of cells whose threads outnumber the CPUs, on a platform that lets them."""
    cpus = platform.offers()["cpus"]
    threads = {
        cell.key: cell.scale.ranks_per_node * (cell.factors["threads"] or 1) for cell in made
    }
    most = max(threads.values())
    if cpus is None or most <= cpus:
        return []
    count = sum(one > cpus for one in threads.values())
    who = "1 cell oversubscribes" if count == 1 else f"{count} cells oversubscribe"
    return [f"{who} the {cpus} CPUs of a node, by up to {most} threads; trials are marked."]


def _blamed(study: Study, resolver: Resolver, choice: Choice) -> dict[str, str]:
    """Say of each reason for which cells fell where in the study what it is about stands."""
    places: dict[str, Place | None] = {}
    for one, why in choice.left_out:
        if why == one.why and why not in places:
            places[why] = place_of_fault(study, resolver, one)
    return {why: study.document.where(at) for why, at in places.items() if at is not None}


def _varied(named: Set[str], everything: Sequence[Resolved]) -> tuple[str, ...]:
    """Name the factors asked for in more than one value, in the vocabulary's order."""
    seen: dict[str, set[Value]] = {name: set() for name in named}
    for one in everything:
        values = one.everything()
        for name in named & values.keys():
            seen[name].add(values[name])
    several = {name for name, values in seen.items() if len(values) > 1}
    factors = [name for name in FACTORS if name in several]
    return (*factors, *sorted(several - set(factors)))


def _label(one: Resolved, varied: Iterable[str]) -> str:
    everything = one.everything()
    stated = one.stated_factors()
    factors = {name: stated[name] for name in varied if name in stated}
    options = {name: everything[name] for name in varied if "." in name and name in everything}
    return cells.label(one.workload, one.framework, factors, options, varied)


def _reference(
    study: Study, made: Iterable[Resolved], fallen: Sequence[Resolved], notes: list[str]
) -> dict[str, str]:
    """Find the one cell per task that the others are compared with; each workload needs one."""
    if study.reference is None:
        return {}
    found: dict[str, list[Resolved]] = {}
    reference, served = {}, set()
    workloads = dict.fromkeys(one.workload for one in made)
    for one in made:
        if study.reference.takes(one.everything()):
            found.setdefault(task(one.workload, one.factors), []).append(one)
    for name, selected in found.items():
        matches = _to_the_letter(selected, study.reference)
        served.add(matches[0].workload)
        reference[name] = matches[0].key
        if len(matches) > 1:
            study.document.fault(("measure", "reference"), _too_many(name, matches))
    wanted = study.reference.wanted.get("workload")
    for workload in workloads:
        if workload not in served and (wanted is None or workload in wanted):
            lost = any(
                one.workload == workload and study.reference.takes(one.everything())
                for one in fallen
            )
            if lost or study.only:
                why = "was left out" if lost else "was not asked for (--only)"
                notes.append(f"{workload} has no reference: its reference cell {why}.")
            else:
                study.document.fault(
                    ("measure", "reference"), f"selects no cell of {workload}; it must select one"
                )
    study.document.refuse_faults()
    return reference


def _piloted(
    measure: Measure, made: Sequence[Cell], reference: Mapping[str, str]
) -> tuple[str, ...]:
    """Give the cells of the pilot block: those of tasks without a declared reference."""
    if measure.looks[-1] < FEWEST_BLOCKS:
        return ()  # too few blocks for any comparison, whatever the reference
    tasks = {one.key: task(one.workload, one.factors) for one in made}
    several = Counter(tasks.values())
    return tuple(key for key, name in tasks.items() if name not in reference and several[name] > 1)


def _to_the_letter(matches: Sequence[Resolved], reference: Selection) -> Sequence[Resolved]:
    """Give those in the very environments that a reference names, where some are.

    Else ``keras`` could not be told from ``keras@jax``, which it selects too.
    """
    exact = [one for one in matches if one.framework in reference.wanted.get("framework", ())]
    return exact or matches


def _too_many(name: str, matches: Sequence[Resolved]) -> str:
    values = [one.everything() for one in matches]
    names = [name for name in values[0] if len({str(one.get(name)) for one in values}) > 1]
    choices = "; ".join(
        f"{name} ({', '.join(sorted({shown(one.get(name)) for one in values}))})" for name in names
    )
    return f"selects {len(matches)} cells of {name}, and must select one: say also {choices}"


def to_json(plan: Plan) -> dict[str, Any]:
    """Give a plan as plan.json holds it."""
    platform = plan.platform.model_dump(mode="json", exclude_none=True)
    shown = redact_values(platform)
    return {
        "version": VERSION,
        "study": redact_values(asdict(plan.study)),
        "platform": shown,
        "platform_file": None if shown == platform else plan.platform.file,
        "cells": [cells.to_json(one) for one in plan.cells],
        "holes": redact_values([asdict(one) for one in plan.holes]),
        "reference": dict(plan.reference) or None,
        "varied": list(plan.varied),
        "order": [list(one) for one in plan.order],
        "seed": plan.measure.seed,
        "trials": plan.measure.trials,
        "looks": list(plan.measure.looks),
        "measure": asdict(plan.measure),
        "notes": redact_values(plan.notes),
    }


def from_json(raw: Mapping[str, Any]) -> Plan:
    """Read a plan from JSON as it was made, whatever is installed now; ValueError if it is none."""
    try:
        platform = Platform.model_validate(raw.get("platform"), context=STORED)
    except ValidationError as faults:
        first = faults.errors()[0]
        where = ".".join(map(str, ("platform", *first["loc"])))
        raise ValueError(f"{where}: {first['msg']}") from None
    plan = read(PlannedStudy, {**raw, "reference": raw.get("reference") or {}})
    known = {cell.key for cell in plan.cells}
    strange = [key for key, _ in plan.order if key not in known]
    if strange:
        raise ValueError(f"order: there is no cell {strange[0]!r}")
    # A plan older than a factor ran at what is now that factor's default.
    defaults = {name: FACTORS[name].default for name in ("strategy", *IN_CELL)}
    whole = tuple(replace(cell, factors={**defaults, **cell.factors}) for cell in plan.cells)
    return Plan(platform=platform, **{**vars(plan), "cells": whole})
