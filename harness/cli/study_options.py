"""Declare how a study is chosen and narrowed, the same for all verbs."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.cli import completion
from harness.errors import UsageError

if TYPE_CHECKING:
    from harness.data.user_data import UserData
    from harness.plan.plan import Plan
    from harness.study.study import Study

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True)
class Selection:
    """The study, platform and options given on the command line."""

    study: str | Mapping[str, Any]
    """A file or a name, or what a file would hold."""
    platform: str | None
    size: str | None
    only: tuple[str, ...]
    overrides: tuple[str, ...]
    data: Path | None = None

    def plan(self) -> tuple[Study, Plan]:
        """Read the study and the platform and make the plan."""
        from harness.doctor.known_noise import known
        from harness.plan.plan import make_plan
        from harness.plan.power.within_budget import within_budget
        from harness.platform.platform import load_platform
        from harness.ranks.nodes import launcher
        from harness.study.study import built_study, load_study

        narrowed: Any = {"size": self.size, "only": self.only, "overrides": self.overrides}
        if isinstance(self.study, str):
            study = load_study(self.study, **narrowed)
        else:
            study = built_study("everything", self.study, **narrowed)
        name = self.platform or study.platform or "local"
        platform = load_platform(name, beside=study.path.parent)
        launcher(platform)  # what it could not heed is refused here, as it is when run
        own = None if self.data is None else adopted(self.data)
        return study, within_budget(make_plan(study, platform, own), known)


def adopted(path: Path) -> UserData:
    """Describe a user's own files, in our folder; they stay as they are."""
    from harness.cli.build_progress import listening
    from harness.data.user_data import adopt
    from harness.run.storage.tiers import own_data

    with listening() as listener:
        return adopt(path, own_data(), doing=listener.doing)


def study_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a verb the study argument and the options that narrow it."""
    argument = click.argument("study", metavar="STUDY", shell_complete=completion.studies)
    return argument(narrowing_options(function))


def narrowing_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a verb the options that narrow a study."""
    for option in (
        click.option(
            "--data",
            type=click.Path(path_type=Path),
            metavar="PATH",
            help="Files of your own to read: pictures, TFRecord files, an LMDB or tokens.",
        ),
        click.option(
            "--set",
            "overrides",
            multiple=True,
            metavar="KEY=VALUE",
            help="Change a key of the study, for example measure.trials=3.",
        ),
        click.option(
            "--only",
            multiple=True,
            metavar="FACTOR=VALUE",
            shell_complete=completion.choices,
            help="Keep only these cells, for example framework=torch.",
        ),
        click.option("--size", metavar="NAME", help="One of the study's sizes, for example smoke."),
        click.option(
            "--platform",
            metavar="NAME|FILE",
            shell_complete=completion.platforms,
            help="The machine; by default this one, as found.",
        ),
    ):
        function = option(function)
    return function


def place(name: str | None, plan: Plan) -> Path:
    """Choose the run's folder; without a name, the second run of a day gets a number."""
    if name is None:
        return Path("runs") / f"{plan.study.name}-{date.today().isoformat()}"
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"A run cannot be called {name!r}: use letters, digits, '.', '-' and '_', "
            "and begin with a letter or a digit."
        )
    return Path("runs") / name
