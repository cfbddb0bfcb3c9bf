"""What a user writes or installs: studies, platforms, names, figures, environments."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from harness import plugins, units
from harness.analysis.context import published_figures
from harness.environments import cache as environment_cache
from harness.environments.identity import contents
from harness.environments.lock import EnvironmentReference, parse_lock
from harness.errors import BakeoffError
from harness.launch import host_lists
from harness.plan.plan import make_plan
from harness.platform.platform import load_platform
from harness.store.layout import TrialName
from harness.study import requirements
from harness.study.study import load_study
from tests.gauntlet import small_run
from tests.gauntlet.parsers.parser import ROOT, Parser, as_text, contents_of, laid, texts


def _study(data: bytes, folder: Path) -> object:
    if not (folder / "platform.toml").exists():
        small_run.write(folder, cells=1, blocks=2)
    study = load_study(laid(data, folder, "mine.toml"))
    return make_plan(study, load_platform(str(folder / "platform.toml")))


def _studies(folder: Path) -> Sequence[bytes]:
    """Give the first studies that ship of which one node can run something."""
    found: list[bytes] = []
    for one in sorted((ROOT / "studies").glob("*.toml")):
        with suppress(BakeoffError):
            _study(one.read_bytes(), folder)
            found.append(one.read_bytes())
    return found[:8]


def _environments(_: Path) -> Sequence[bytes]:
    facts = {
        "version": 1,
        "reference": "torch",
        "device": "cpu",
        "content": "c",
        "python": "cp311",
        "packages": {"torch": "2.1"},
        "notes": ["x"],
        "size_bytes": 1,
        "seconds": 1.5,
        "created_wall_ns": 1,
        "through": "",
    }
    return [json.dumps(facts).encode()]


def _units(data: bytes, _: Path) -> None:
    text = as_text(data)
    for read in (units.seconds, units.size_bytes, units.bytes_per_second, units.flops, units.watts):
        try:
            read(text)
        except ValueError:
            continue


PARSERS = (
    Parser(
        "host lists",
        texts("cn[001-003,7],login1", "rack[1-2]-node[01-02]", "h1 h2,user@h3"),
        lambda data, _: host_lists.unfolded(as_text(data)),
        ("harness/launch/host_lists",),
    ),
    Parser(
        "published figures",
        contents_of("reports/references", "*.toml"),
        lambda data, _: published_figures.parse(as_text(data), "x.toml"),
        ("harness/analysis/context/published_figures",),
        share=0.1,
    ),
    Parser(
        "units",
        texts("60 s", "16 GiB", "1.5 TFLOP/s", "300 W", "2 GB/s"),
        _units,
        ("harness/units",),
    ),
    Parser(
        "environments' names",
        texts("torch@horovod", "torch"),
        lambda data, _: EnvironmentReference.parse(as_text(data)),
        ("harness/environments/lock",),
    ),
    Parser(
        "requirements",
        texts("gpu_memory >= 8 GiB", "device = gpu"),
        lambda data, _: requirements.parse_needs(as_text(data)),
        ("harness/study/requirements",),
        refuses=(BakeoffError, ValueError),
    ),
    Parser(
        "trials' names",
        texts("trial-3.2"),
        lambda data, _: TrialName.parse(as_text(data)),
        ("harness/store/layout",),
    ),
    Parser(
        "studies",
        _studies,
        _study,
        ("harness/toml/document", "harness/toml/line_numbers"),
        share=0.02,
    ),
    Parser(
        "platforms",
        contents_of("platforms", "*.toml"),
        lambda data, folder: load_platform(str(laid(data, folder, "site.toml"))),
        ("harness/toml/document", "harness/toml/line_numbers"),
        share=0.05,
    ),
    Parser(
        "locks",
        contents_of("harness/environments", "*.toml"),
        lambda data, folder: parse_lock("mine", laid(data, folder, "mine-lock.toml")),
        ("harness/environments/lock",),
        share=0.2,
    ),
    Parser(
        "environments' markers",
        _environments,
        lambda data, folder: environment_cache.read(
            laid(data, folder, "built/environment.json").parent
        ),
        ("harness/environments/cache",),
        is_json=True,
        share=0.5,
    ),
    Parser(
        "digests of packages",
        texts('{"version": 1, "files": {"torch/x.py": [[1, 2, 3], "d1"]}}'),
        lambda data, folder: contents._known(laid(data, folder, "contents.json")),
        ("harness/environments/identity/contents",),
        is_json=True,
        share=0.3,
    ),
    Parser(
        "plug-ins' entry points",
        texts("[bakeoff.adapters]\nmine = my.adapters\n; x\n[console_scripts]\na = b:c\n"),
        lambda data, _: list(plugins._sections(as_text(data))),
        ("harness/plugins",),
    ),
)
