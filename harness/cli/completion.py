"""Complete names in the shell: studies, platforms, runs, environments."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import click

Complete = Callable[[click.Context, click.Parameter, str], list[str]]


def _starting(names: Callable[[], Iterable[str]]) -> Complete:
    def complete(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
        return sorted(name for name in names() if name.startswith(incomplete))

    return complete


def _files() -> list[str]:
    return [str(path) for path in Path().glob("*.toml")]


def _studies() -> list[str]:
    from harness.study.study import study_files

    return [*study_files(), *_files()]


def _platforms() -> list[str]:
    from harness.platform.platform import platform_names

    return [*platform_names(), *_files()]


def _runs() -> list[str]:
    from harness.store.run_directory.find_runs import RUNS, runs_in

    return [str(run.relative_to(RUNS)) for run in runs_in(RUNS)]


def _environments() -> list[str]:
    from harness.plugins import environment_names

    return list(environment_names())


def _choices() -> list[str]:
    from harness.plugins import workload_names
    from harness.study.factors import FACTORS
    from harness.study.framework import framework_names

    named = [f"workload={name}" for name in workload_names()]
    named += [f"framework={name}" for name in framework_names()]
    return [*named, *(f"{name}=" for name in FACTORS if name not in ("workload", "framework"))]


studies = _starting(_studies)
platforms = _starting(_platforms)
runs = _starting(_runs)
environments = _starting(_environments)
choices = _starting(_choices)
