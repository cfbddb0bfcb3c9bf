"""Look whether each framework environment of a plan is there, and its framework answers."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from harness.doctor.finding import DoctorFinding
from harness.environments import container_check, verify, worker_python
from harness.environments.lock import EnvironmentReference, load_lock, lock_files
from harness.errors import Unavailable, UsageError
from harness.plan.cell import Cell
from harness.plan.plan import Plan
from harness.platform.platform import Platform
from harness.run.preflight.wording import split


def look(plan: Plan) -> Iterator[DoctorFinding]:
    """Start each interpreter, load its modules, import its framework; enter each container."""
    for name in sorted({cell.environment for cell in plan.cells}):
        there = [cell for cell in plan.cells if cell.environment == name]
        contained = {_boxed(cell) for cell in there}
        if False in contained:
            on_gpus = any(one.factors["device"] == "gpu" for one in there if not _boxed(one))
            yield _bare(name, plan.platform, on_gpus=on_gpus)
        if True in contained:
            yield _contained(name, plan.platform)


def _boxed(cell: Cell) -> bool:
    return bool(cell.factors["container"])


def _bare(name: str, platform: Platform, *, on_gpus: bool) -> DoctorFinding:
    check = f"environment {name}"
    lock_name = EnvironmentReference.parse(name).lock
    imports = load_lock(lock_name).imports if lock_name in lock_files() else ()
    mend = f"Mend frameworks.{lock_name} in {platform.name}: name a Python that has it."
    where = ""
    try:
        found = worker_python.resolve(name, platform)
        where = f"{found.argv[0]}: "
        framework = verify.imported(found.argv, imports, found.env)
    except (Unavailable, UsageError) as problem:
        seen, remedy = split(problem)
        return DoctorFinding(check, "fault", f"{where}{seen}", remedy or mend)
    if on_gpus and found.device == "cpu":
        seen = f"{found.description}, and cells take GPUs"
        return DoctorFinding(
            check, "fault", seen, f"bakeoff env create {shlex.quote(name)} --device gpu"
        )
    version = "" if found.is_ours else next(filter(None, framework.versions), "")
    return DoctorFinding(check, "fine", f"{found.description}{', ' * bool(version)}{version}")


def _contained(name: str, platform: Platform) -> DoctorFinding:
    check = f"container of {name}"
    lock_name = EnvironmentReference.parse(name).lock
    mend = f"Mend frameworks.{lock_name}.container in {platform.name}."
    try:
        found = worker_python.contained(name, platform)
        complaint = (
            container_check.complaint(load_lock(lock_name), platform)
            if lock_name in lock_files()
            else None
        )
    except (Unavailable, UsageError) as problem:
        return DoctorFinding(check, "fault", " ".join(str(problem).split()), mend)
    if complaint is not None:
        return DoctorFinding(check, "fault", complaint, mend)
    return DoctorFinding(check, "fine", found.description)
