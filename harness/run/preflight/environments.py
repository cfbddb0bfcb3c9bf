"""Look whether each framework environment of a plan is there, and its framework answers."""

from __future__ import annotations

from collections.abc import Iterator

from harness.doctor.finding import DoctorFinding
from harness.environments import container_check, verify, worker_python
from harness.environments.lock import EnvironmentReference, load_lock, lock_files
from harness.errors import Unavailable, UsageError
from harness.plan.plan import Plan
from harness.platform.platform import Platform
from harness.run.preflight.wording import split


def look(plan: Plan) -> Iterator[DoctorFinding]:
    """Start each interpreter, load its modules, import its framework; enter each container."""
    for name in sorted({cell.environment for cell in plan.cells}):
        there = [cell for cell in plan.cells if cell.environment == name]
        contained = {bool(cell.factors["container"]) for cell in there}
        if False in contained:
            yield _bare(name, plan.platform)
        if True in contained:
            yield _contained(name, plan.platform)


def _bare(name: str, platform: Platform) -> DoctorFinding:
    check = f"environment {name}"
    lock_name = EnvironmentReference.parse(name).lock
    imports = load_lock(lock_name).imports if lock_name in lock_files() else ()
    try:
        found = worker_python.resolve(name, platform)
        framework = verify.imported(found.argv, imports, found.env)
    except (Unavailable, UsageError) as problem:
        seen, remedy = split(problem)
        mend = f"Mend frameworks.{lock_name} in {platform.name}: name a Python that has it."
        return DoctorFinding(check, "fault", seen, remedy or mend)
    version = "" if found.is_ours else next(filter(None, framework.versions), "")
    return DoctorFinding(check, "fine", f"{found.description}{', ' * bool(version)}{version}")


def _contained(name: str, platform: Platform) -> DoctorFinding:
    check = f"container of {name}"
    lock_name = EnvironmentReference.parse(name).lock
    try:
        found = worker_python.contained(name, platform)
        complaint = (
            container_check.complaint(load_lock(lock_name), platform)
            if lock_name in lock_files()
            else None
        )
    except (Unavailable, UsageError) as problem:
        return DoctorFinding(check, "fault", " ".join(str(problem).split()))
    if complaint is not None:
        return DoctorFinding(check, "fault", complaint)
    return DoctorFinding(check, "fine", found.description)
