"""Prepare what a session needs before its first trial: interpreters, payload, identity.

``run.json`` keeps each cell's first fingerprint and the accepted one. A trial is mixed where the
two differ: the run was resumed with ``--mix`` after code, environment or platform had changed.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import harness
from harness.environments import worker_python
from harness.environments.worker_python import Interpreter
from harness.errors import RunError, Unavailable
from harness.plan import plan as plans
from harness.plan.cell import fingerprint
from harness.plan.plan import Plan
from harness.platform.platform import Platform, load_platform
from harness.ranks.payload import Closures, Payload, gather
from harness.run import trust
from harness.run.provenance import provenance
from harness.run.storage.missing_data import missing_data
from harness.run.trials.prepared import Prepared
from harness.store.gate_results import SEALS
from harness.store.layout import RunPaths
from harness.store.paths.run_format import VERSION
from harness.store.run_code import TRUSTED, digest_of, payload_digest
from harness.store.run_directory.identity import Identity
from harness.store.run_directory.opening import creating, stored_plan
from harness.store.typed import damage
from harness.toml.tables import STORED
from harness.worker.redaction.places import HIDDEN
from harness.worker.redaction.redact import redact_text, redact_values


@dataclass(frozen=True)
class TrialBasis:
    """The interpreters, payload and fingerprints that a plan's trials would have here and now."""

    interpreters: Mapping[str, Interpreter]
    payload: Payload
    fingerprints: Mapping[str, str]
    """By cell."""
    own: Mapping[str, Payload] = field(default_factory=dict)
    """Code that some cells have of their own, by the folder of the run that holds it."""


def found(plan: Plan) -> dict[str, Interpreter]:
    """Find every interpreter and every data set; name all that is missing together."""
    interpreters: dict[str, Interpreter] = {}
    missing = []
    for name in sorted({cell.environment for cell in plan.cells}):
        there = [cell for cell in plan.cells if cell.environment == name]
        resolve = worker_python.resolve
        if all(cell.factors["container"] for cell in there):
            resolve = worker_python.contained
        try:
            interpreters[name] = worker_python.identified(resolve(name, plan.platform))
        except Unavailable as problem:
            missing.append(str(problem))
    missing += missing_data(plan)
    if missing:
        raise Unavailable("\n".join(missing))
    return interpreters


def survey(plan: Plan, own: Mapping[str, Payload] | None = None) -> TrialBasis:
    """Find every interpreter and digest what each cell's trials would run; change nothing."""
    return of_payload(plan, found(plan), gather(), own)


def of_cells(basis: TrialBasis, plan: Plan) -> TrialBasis:
    """Keep of a basis what the cells of a plan need, which are some of those surveyed."""
    environments = {cell.environment for cell in plan.cells}
    folders = {cell.payload for cell in plan.cells}
    return replace(
        basis,
        interpreters={k: one for k, one in basis.interpreters.items() if k in environments},
        fingerprints={cell.key: basis.fingerprints[cell.key] for cell in plan.cells},
        own={name: one for name, one in basis.own.items() if name in folders},
    )


def of_payload(
    plan: Plan,
    interpreters: Mapping[str, Interpreter],
    payload: Payload,
    own: Mapping[str, Payload] | None = None,
) -> TrialBasis:
    """Digest what each cell's trials would run of a payload, or of their own."""
    closures: dict[str | None, Closures] = {None: Closures(payload)}
    closures |= {name: Closures(one) for name, one in (own or {}).items()}
    # Without its secrets: a digest of them could be tried out, and a new one changes no number.
    facts = redact_values(plan.platform.model_dump(mode="json", exclude_none=True))
    platform = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
    fingerprints = {
        cell.key: fingerprint(
            closures[cell.payload].digest(
                cell.workload_module, cell.adapter_module, *cell.reader_modules
            ),
            interpreters[cell.environment].identity,
            platform,
        )
        for cell in plan.cells
    }
    return TrialBasis(interpreters, payload, fingerprints, own or {})


def lay_out(
    plan: Plan,
    root: Path,
    study_text: str,
    basis: TrialBasis,
    *,
    numbered: bool,
    is_trusted: bool = False,
) -> RunPaths:
    """Make the run directory with everything but trials.

    ``is_trusted`` is a run with code that nobody here knows, on trust alone; readers see it.
    """
    identity_fields = {
        "name": plan.study.name,
        "title": redact_text(plan.study.title),
        "seed": plan.measure.seed,
        "started_wall_ns": time.time_ns(),
        "payload": RunPaths(root).payload.name,
        "first": dict(basis.fingerprints),
        "accepted": dict(basis.fingerprints),
        SEALS: True,
    }
    if is_trusted:
        identity_fields[TRUSTED] = True
    with creating(root, identity_fields, numbered=numbered) as paths:
        paths.files.write(paths.study, redact_text(study_text))
        record_environments(paths, basis)
        paths.files.write_json(paths.provenance, provenance(Path(harness.__file__).parents[1]))
        text = json.dumps(plans.to_json(plan), indent=1, sort_keys=True, allow_nan=False) + "\n"
        plan_digest = digest_of({paths.plan.name: text.encode()})
        digests = write_payload(paths.payload, paths, basis.payload)
        for name, own in basis.own.items():
            digests |= write_payload(paths.root / name, paths, own)
        record(paths, {paths.plan.name: plan_digest, **digests})
        trust.remember_caches(paths)
        paths.files.write(paths.plan, text)  # last: without it, the run was never fully made
    return paths


def write_payload(folder: Path, paths: RunPaths, payload: Payload) -> dict[str, str]:
    """Copy a payload, and give its digest by its name once that is what the disk holds."""
    payload.copy(folder)
    digest = payload.digest()
    if payload_digest(paths.files, folder) != digest:
        raise RunError(f"{folder}: the disk does not hold what was written. Look after it.")
    return {folder.name: digest}


def record(paths: RunPaths, digests: Mapping[str, str], **more: Any) -> None:
    """Keep the digests of what is to be carried out, outside of the run too."""
    trust.remember(*digests.values())
    raw = paths.files.read_object(paths.run)
    before = raw.get("digests")
    both = {**(before if isinstance(before, dict) else {}), **digests}
    paths.files.write_json(paths.run, {**raw, **more, "digests": both, "version": VERSION})


def read_plan(paths: RunPaths) -> Plan:
    """Read the plan that a run carries out."""
    if not paths.files.exists(paths.plan):
        raise RunError(
            f"{paths.root}: this run was never fully made (it has no plan.json), "
            "and no trial of it ran. Remove it and run the study again."
        )
    raw = stored_plan(paths)
    with damage(paths.plan):
        return plans.from_json(raw)


def with_hidden_values(paths: RunPaths, plan: Plan) -> Plan:
    """Take again from the platform's profile what a run hides of it: it keeps no secret."""
    kept = plan.platform.model_dump(mode="json", exclude_none=True)
    if HIDDEN not in json.dumps(kept):
        return plan
    file = stored_plan(paths).get("platform_file")
    if not isinstance(file, str) or not Path(file).is_file():
        raise RunError(
            f"{paths.root}: the platform '{plan.platform.name}' sets variables that hold secrets, "
            f"which a run does not keep. Its profile is gone, which has them: {file}. Put it back."
        )
    own = load_platform(file, beside=Path(file).parent.parent)
    filled = _filled(kept, own.model_dump(mode="json", exclude_none=True))
    return replace(plan, platform=Platform.model_validate(filled, context=STORED))


def _filled(kept: Any, own: Any) -> Any:
    """Lay the hidden values of one tree over another, place by place."""
    if isinstance(kept, dict) and isinstance(own, dict):
        return {name: _filled(value, own.get(name)) for name, value in kept.items()}
    if isinstance(kept, list) and isinstance(own, list) and len(kept) == len(own):
        return [_filled(*pair) for pair in zip(kept, own, strict=True)]
    return own if isinstance(kept, str) and HIDDEN in kept and isinstance(own, str) else kept


def record_environments(paths: RunPaths, basis: TrialBasis) -> None:
    """Write what each environment is, as trials find it."""
    for name, interpreter in basis.interpreters.items():
        place = paths.environment(name)
        paths.files.make_folder(place.parent)
        paths.files.write_json(place, redact_values(interpreter.record()))


def prepared(plan: Plan, basis: TrialBasis, known: Identity) -> dict[str, Prepared]:
    """Join each cell with where it runs and what identifies it."""
    return {
        cell.key: Prepared(
            cell,
            basis.interpreters[cell.environment],
            basis.fingerprints[cell.key],
            mixed=basis.fingerprints[cell.key] != known.first.get(cell.key),
        )
        for cell in plan.cells
    }
