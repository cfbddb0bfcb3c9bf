"""Break studies and profiles at random places: whatever is wrong is a message."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import FaultyFile, UsageError
from harness.plan.plan import make_plan
from harness.platform.platform import Platform, load_platform
from harness.study.study import load_study

STUDY: dict[str, Any] = {
    "title": "T",
    "question": "?",
    "platform": "local",
    "matrix": {
        "workload": ["alexnet"],
        "framework": ["torch", "jax"],
        "batch": [1, 2],
        "torch": {"mode": ["plain"]},
    },
    "zip": [{"nodes": [1, 2], "strategy": ["none", "ddp"]}],
    "include": [{"workload": "tinycnn", "framework": "torch", "threads": 1}],
    "exclude": [{"framework": "jax", "batch": [2], "why": "because"}],
    "defaults": {"workload": {"alexnet": {"precision": "bf16"}}, "framework": {"jax": {}}},
    "measure": {
        "trials": 2,
        "warmup": "2 steps",
        "until": "5 s",
        "until_interval": "2 %",
        "timeout": "1 min",
        "memory": "1 GiB",
        "reference": {"framework": "torch", "batch": 1, "nodes": 1},
        "seed": 3,
    },
    "size": {"smoke": {"matrix": {"batch": 4}, "measure": {"trials": 1}}},
}

PROFILE: dict[str, Any] = {
    "title": "T",
    "nodes": 2,
    "node": {"cpus": 4, "memory": [{"kind": "DDR", "size": "8 GiB"}]},
    "accelerators": [{"model": "A", "count": 4, "memory": "16 GiB", "graph": [["0", "1", "NV2"]]}],
    "network": {"fabric": "Ethernet"},
    "storage": {"scratch": {"path": "/s", "roles": ["data"]}},
    "ceilings": {"fp32": {"compute": "1.5 TFLOP/s", "tag": "declared", "source": "x"}},
    "launcher": {"name": "slurm", "settings": {"partition": "gpu"}},
    "frameworks": {"torch": {"modules": ["torch"], "container": {"engine": "bwrap", "image": "i"}}},
}

WRONG = st.one_of(
    st.sampled_from(["", "torhc", "5", "5 parsecs", "1 s", "plain", "[", "tensorflow@"]),
    st.integers(-1, 40),
    st.booleans(),
    st.just(0.5),
    st.just([]),
    st.just({}),
    st.just([{}]),
    st.just([[1]]),
    st.just({"alexnet": 1, "torch": {"x": 1}}),
)


def written(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f'"{key}" = {written(one)}' for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(written, value)) + "]"
    return json.dumps(value)


def places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inside: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        inside = list(value.items())
    elif isinstance(value, list):
        inside = list(enumerate(value))
    return [at, *(place for step, one in inside for place in places(one, (*at, step)))]


def broken(data: st.DataObject, good: dict[str, Any]) -> str:
    bad = copy.deepcopy(good)
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.sampled_from(places(bad)[1:] or [("title",)]))
        table: Any = bad
        for step in place[:-1]:
            table = table[step]
        how = data.draw(st.sampled_from(["replace", "remove", "misspell"]))
        if how == "replace":
            table[place[-1]] = copy.deepcopy(data.draw(WRONG))
        elif how == "misspell" and isinstance(table, dict):
            table[f"{place[-1]}x"] = table.pop(place[-1])
        else:
            del table[place[-1]]
    return "".join(f"{key} = {written(value)}\n" for key, value in bad.items())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("broken")


def check_faults(error: UsageError) -> None:
    if isinstance(error, FaultyFile):
        assert error.faults
        assert len(set(error.faults)) == len(error.faults)
        for fault in error.faults:
            assert fault.line is not None or "missing" in fault.message or "needs" in fault.message


@settings(max_examples=60, deadline=None)
@given(data=st.data(), size=st.sampled_from([None, "smoke"]))
def test_a_broken_study_is_planned_or_refused_with_messages(
    data: st.DataObject, size: str | None, folder: Path
) -> None:
    path = folder / "study.toml"
    path.write_text(broken(data, STUDY))
    machine = Platform.model_validate({"name": "m", "title": "M", "nodes": 2})
    try:
        make_plan(load_study(path, size=size), machine)
    except UsageError as error:
        check_faults(error)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_broken_profile_is_read_or_refused_with_messages(
    data: st.DataObject, folder: Path
) -> None:
    path = folder / "profile.toml"
    path.write_text(broken(data, PROFILE))
    try:
        load_platform(str(path)).offers()
    except UsageError as error:
        check_faults(error)
