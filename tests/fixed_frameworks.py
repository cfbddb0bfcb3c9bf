"""Give tests of studies a fixed set of frameworks, and a folder to write files in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness import plugins
from harness.errors import UsageError
from harness.plan.plan import Plan, make_plan
from harness.platform.platform import Platform
from harness.study.framework import framework_info
from harness.study.study import load_study

NAMES = ("caffe", "jax", "keras", "null", "singa", "tensorflow", "torch")

PLAIN = """
name = "{name}"
title = "{name} for tests"
module = "harness.worker.adapters.{name}"
kinds = ["train"]
devices = ["cpu", "gpu"]
[strategies.ddp]
[strategies.horovod]
environment = "horovod"
[factors]
precision = ["fp32", "bf16"]
threads = "any"
layout = ["channels-first", "channels-last"]
"""

TORCH = (
    PLAIN.replace(
        "[strategies.ddp]", "[strategies.mirrored]\nseveral_devices = true\n[strategies.ddp]"
    ).replace(
        '"bf16"]',
        '"bf16", "tf32"]\ncompile = [false, true]\nrecompute = [false, true]\n'
        'attention = ["fused", "plain"]',
    )
    + """
[defaults]
layout = "channels-last"
[options.fused]
type = "flag"
default = true
meaning = "one kernel for all parameters"
[options.mode]
type = "choice"
allowed = ["plain", "hard"]
default = "plain"
meaning = "how hard it tries"
[[requires]]
when = { precision = "tf32" }
needs = "device = gpu"
why = "TF32 exists on NVIDIA GPUs only"
[[requires]]
when = { device = "gpu" }
needs = "gpu_memory >= 8 GiB"
why = "needs 8 GiB on the GPU"
"""
)

Write = Callable[..., Path]


@pytest.fixture(autouse=True, scope="module")
def frameworks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = tmp_path_factory.mktemp("adapters")
    files = {name: folder / f"{name}.toml" for name in NAMES}
    for name, path in files.items():
        path.write_text((TORCH if name == "torch" else PLAIN).replace("{name}", name))
    framework_info.cache_clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plugins, "adapter_files", lambda: files)
        yield
    framework_info.cache_clear()


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Write a file into the current folder, and give its path as a person would type it."""
    monkeypatch.chdir(tmp_path)

    def written(text: str, name: str = "mine.toml") -> Path:
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    return written


@pytest.fixture
def refusal(write: Write) -> Callable[..., str]:
    """Give what is said about a study that cannot be read or planned."""

    def said(text: str, **how: object) -> str:
        path = write(text)
        with pytest.raises(UsageError) as caught:
            make_plan(load_study(path, **how), _machine())  # type: ignore[arg-type]
        return str(caught.value)

    return said


@pytest.fixture
def planned(write: Write) -> Callable[..., Plan]:
    """Plan a study for a machine of two CPUs and no GPU."""

    def plan(text: str, *, platform: Platform | None = None, **how: object) -> Plan:
        return make_plan(load_study(write(text), **how), platform or _machine())  # type: ignore[arg-type]

    return plan


def _machine(**changes: object) -> Platform:
    facts = {
        "name": "box",
        "title": "A box",
        "nodes": 1,
        "node": {"cpus": 2, "memory": [{"kind": "DDR", "size": "8 GiB"}]},
        "accelerators": [],
    }
    return Platform.model_validate({**facts, **changes})


@pytest.fixture
def machine() -> Callable[..., Platform]:
    """Give a platform of two CPUs and no GPU, with some facts changed."""
    return _machine
