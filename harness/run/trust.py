"""Decide whether the code and the commands of a run directory may be carried out.

A run directory may come from anybody, and its payload is code; its plan names interpreters,
environments and commands. Those that this user's own sessions made are known by digests that they
left outside of the directory, one small file each, under ``STATE/bakeoff/own-runs/``. A payload
that is this installation's own code is known as well. Everything else a user has to ask for. The
jobs that a run names are known in the same way: any number may stand in its ``jobs.json``; and so
are compile caches, which are code.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import user_folders
from harness.errors import RunError
from harness.plan.plan import Plan
from harness.ranks.payload import Payload, copied, remove_byte_code
from harness.store.layout import RunPaths
from harness.store.paths.birth import born_ns
from harness.store.run_code import TRUSTED, digest_of, digests, payload_digest, plan_digest
from harness.store.run_directory import session_log
from harness.store.run_directory.identity import identity, is_copy
from harness.units import listed
from harness.worker.redaction.redact import redact_values

_TOLD = ("launcher", "modules", "environment", "frameworks", "storage")
"""What a plan's platform has executed, or written to."""
_LONGEST = 160


@dataclass(frozen=True)
class Trust:
    """What of a run may be carried out although nothing here knows it."""

    payload: bool = False
    plan: bool = False
    digests: frozenset[str] = frozenset()
    """What this user's own submission wrote into the job: other nodes may have another HOME."""


NOTHING = Trust()


def remember(*digests: str) -> None:
    """Keep digests of what this user makes; where nothing can be kept, less is known later."""
    folder = _folder()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for digest in digests:
            os.close(os.open(folder / digest, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except OSError:
        pass


def require_plan(paths: RunPaths, plan: Plan, trust: Trust) -> None:
    """Refuse a plan that this user did not make, unless it is trusted."""
    digest = plan_digest(paths)
    if _is_known(digest, trust) or (_keeps_nothing() and _is_own(paths)):
        return
    if not trust.plan:
        told = "".join(f"\n    {line}" for line in _commands(plan))
        raise RunError(
            f"{paths.root}: you did not make this run here, or its plan.json was changed since. "
            f"Going on would carry out what that file names, among it:{told}\n"
            "If you trust whoever wrote it, add --trust-plan; or run its study anew: "
            f"bakeoff run {paths.study}"
        )
    remember(digest)
    session_log.log(paths, "plan trusted")


def knows_payload(paths: RunPaths, installed: Payload, trust: Trust) -> bool:
    """Whether a run's code is this user's own, or what this installation would write."""
    digest = _code_digest(paths)
    return _is_known(digest, trust) or digest == installed.digest()


def knows_code(digest: str, trust: Trust) -> bool:
    """Whether code of this digest is this user's own, or trusted from now on."""
    if digest and trust.payload:
        remember(digest)
    return _is_known(digest, trust)


def admit_payload(paths: RunPaths, installed: Payload, trust: Trust) -> bool:
    """Refuse code of which nobody here knows; give whether it is carried out on trust alone."""
    digest = _code_digest(paths)
    raw = paths.files.read_object(paths.run)
    if knows_payload(paths, installed, trust):
        return bool(raw.get(TRUSTED) == digest)
    if not digest:
        raise RunError(
            f"{_payload(paths)}: the run's code is not there. Go on with this bakeoff's own code "
            "by --mix."
        )
    if not trust.payload:
        raise RunError(
            f"{_payload(paths)}: this code is neither what you ran before nor what this bakeoff "
            f"would write; it differs in {differing_files(paths, installed)}. Go on with this "
            "bakeoff's own code by --mix, or, if you trust this one, carry it out by "
            "--trust-payload; the report will show either."
        )
    remember(digest)
    paths.files.write_json(paths.run, {**raw, TRUSTED: digest})
    session_log.log(paths, "payload trusted")
    return True


def remember_job(paths: RunPaths, job: str) -> None:
    """Keep that this user submitted a job for this very run directory."""
    remember(_job_digest(paths, job))


def knows_job(paths: RunPaths, job: str) -> bool:
    """Whether this user submitted a job for this very run directory."""
    if is_copy(paths):
        return False
    return _is_known(_job_digest(paths, job), NOTHING) or (_keeps_nothing() and _is_own(paths))


def remember_session(paths: RunPaths) -> None:
    """Keep that this user's sessions start processes for this very run directory."""
    remember(_session_digest(paths))


def knows_session(paths: RunPaths) -> bool:
    """Whether processes that carry the run's id can be what this very directory left behind.

    Any id may stand in a run.json; a copy on another file system may even have the same inode.
    """
    return _is_known(_session_digest(paths), NOTHING) or (_keeps_nothing() and _is_own(paths))


def remember_caches(paths: RunPaths) -> None:
    """Keep that whatever compilers leave in this very run directory is this user's own."""
    remember(_caches_digest(paths))


def knows_caches(paths: RunPaths, trust: Trust) -> bool:
    """Whether only this user's sessions can have filled the caches of this very directory.

    Whoever owns it may state its true inode in run.json, and may write to it at any time.
    """
    is_own = paths.root.stat().st_uid == os.geteuid()
    return is_own and _is_known(_caches_digest(paths), trust)


def for_jobs(paths: RunPaths) -> tuple[str, ...]:
    """Give the digests by which a job knows a run on a node where the user has another HOME."""
    return (*digests(paths), _caches_digest(paths))


def _caches_digest(paths: RunPaths) -> str:
    """Digest what tells a directory; its device is left out, which nodes number differently."""
    known = paths.files.read_object(paths.run).get("id")
    made = f"{known} {paths.root.stat().st_ino} {born_ns(paths.root)}"
    return digest_of({"caches": made.encode(errors="surrogatepass")})


def _session_digest(paths: RunPaths) -> str:
    made = f"{paths.files.read_object(paths.run).get('id')} {paths.root.stat().st_ino}"
    on = f"session on {paths.root.stat().st_dev}"
    return digest_of({on: made.encode(errors="surrogatepass")})


def _job_digest(paths: RunPaths, job: str) -> str:
    made = f"{paths.files.read_object(paths.run).get('id')} {paths.root.stat().st_ino}"
    return digest_of({f"job {job}": made.encode(errors="surrogatepass")})


def _code_digest(paths: RunPaths) -> str:
    """Digest a run's code as ranks import it: without the byte code that may lie beside it."""
    payload = _payload(paths)
    if paths.files.exists(payload):
        remove_byte_code(paths.files, payload)
    return payload_digest(paths.files, payload)


def _payload(paths: RunPaths) -> Path:
    return paths.root / identity(paths).payload


def _is_known(digest: str, trust: Trust) -> bool:
    return digest != "" and (digest in trust.digests or os.path.lexists(_folder() / digest))


def _folder() -> Path:
    return user_folders.state_home() / "own-runs"


def _keeps_nothing() -> bool:
    """Whether this user has no place where digests could have been kept."""
    try:
        _folder().mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return True
    return not os.access(_folder(), os.W_OK | os.X_OK)


def _is_own(paths: RunPaths) -> bool:
    """Whether this very directory was made by this user: no copy, and nothing unpacked."""
    return not is_copy(paths) and paths.root.stat().st_uid == os.geteuid()


def _commands(plan: Plan) -> Iterator[str]:
    platform = redact_values(plan.platform.model_dump(mode="json", exclude_defaults=True))
    for key in _TOLD:
        yield from _leaves(key, platform.get(key))
    for allocator in sorted({cell.factors["allocator"] or "" for cell in plan.cells} - {""}):
        yield from _leaves("allocator", allocator)
    yield f"frameworks: {', '.join(sorted({cell.environment for cell in plan.cells}))}"


def _leaves(name: str, value: Any) -> Iterator[str]:
    """Give each value of a tree on a line of its own, so that a long one hides no other."""
    if isinstance(value, dict):
        for key, one in value.items():
            yield from _leaves(f"{name}.{key}", one)
    elif value:
        text = json.dumps(value)
        yield f"{name} = {text if len(text) <= _LONGEST else text[:_LONGEST] + ' …'}"


def differing_files(paths: RunPaths, installed: Payload) -> str:
    """Name files of a run's code that this installation has otherwise; empty if it has none."""
    payload = _payload(paths)
    there = copied(payload, paths.files, installed).contents()
    ours = installed.contents()
    names = sorted(
        {*paths.files.files_below(payload)} - ours.keys()
        | {name for name, content in ours.items() if there.get(name) != content}
    )
    return listed([repr(name) for name in names])
