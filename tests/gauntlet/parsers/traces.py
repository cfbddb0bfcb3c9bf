"""Where a step's time goes, as runs keep it, and what this machine was found to reach."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from harness.analysis.analyse import analyse
from harness.analysis.explain.cells import explained
from harness.analysis.floors import kept_floors
from harness.doctor import known_ceilings, known_noise
from harness.run.turns.known_bias import KnownBias
from harness.sections.contract.gather import gather_limits
from harness.sections.contract.read import read_with_limits
from harness.store.dataset import Dataset
from harness.store.layout import RunPaths
from harness.store.record_readers.ceilings import reached_in
from harness.worker.attribution import hlo_names, protobuf, xspace
from reports.exports.formats import trace
from reports.text import explanation
from tests.gauntlet.parsers.parser import ROOT, Examples, Parse, Parser, laid, texts

_RECORDED = ROOT / "tests/store/recorded"
TRACED = {
    "version": 1,
    "traced_by": "torch.profiler",
    "kinds": [["conv1", "forward", "aten::conv2d", "float32", "2x3"]],
    "steps": [{"number": 0, "length_ns": 900, "operations": [[0, 5, 100]], "left_out": 0}],
}
_FLOOR = {
    "seconds": 1e-3,
    "low": 1e-3,
    "high": 2e-3,
    "trials": 3,
    "disturbed": False,
    "by": "torch",
    "environment": "e",
    "layer": "conv1",
    "run": "r",
    "wall_ns": 5,
}
_FLOORS = {"version": 2, "layers": {"conv": _FLOOR}, "memory_bytes_per_s": 1e10}
_NOISE = {"version": 1, "runs": [{"run": "r", "cells": {"c": [5, 0.01]}, "within": [1, 2.0]}]}


def _of(recorded: str, pattern: str) -> Examples:
    return lambda _: [one.read_bytes() for one in sorted((_RECORDED / recorded).glob(pattern))]


def _in(recorded: str, pattern: str, read: Callable[[RunPaths], object]) -> Parse:
    """Read a recorded run in which one file is damaged."""

    def parse(data: bytes, folder: Path) -> object:
        place = folder / recorded
        if not place.exists():
            shutil.copytree(_RECORDED / recorded, place)
            for found in place.glob("cells/*/attribution"):
                (found / "traced.json").write_text(json.dumps(TRACED))
        damaged = sorted(place.glob(pattern))[0]
        kept = damaged.read_bytes()
        try:
            damaged.write_bytes(data)
            return read(RunPaths(place))
        finally:
            damaged.write_bytes(kept)

    return parse


def _explained(paths: RunPaths) -> object:
    results = analyse(Dataset([paths.root]))
    one, other = results.cells[:2]
    return explanation.render(explained(results, gather_limits(results), one, other), "a", "b")


def _exported(paths: RunPaths) -> object:
    return trace.of_results(analyse(Dataset([paths.root])))


def _limits(paths: RunPaths) -> object:
    return read_with_limits([paths.root])


def _reached(paths: RunPaths) -> object:
    return [reached_in(paths.ceilings_of(one.name)) for one in sorted(paths.cells.iterdir())]


def _kept(place: Callable[[], Path], read: Callable[[], object]) -> Parse:
    """Read what this user keeps of a machine, damaged: less is known then, and nothing refused."""

    def parse(data: bytes, _: Path) -> object:
        laid(data, place().parent, place().name)
        return read()

    return parse


def _noise(data: bytes, folder: Path) -> object:
    told = known_noise._kept(laid(data, folder, "noise.json"))
    return [known_noise._numbers(one["cells"]) for one in told]


def _bias(data: bytes, folder: Path) -> object:
    bias: Any = SimpleNamespace(_file=lambda *_: laid(data, folder, "bias.jsonl"), _run="own")
    bias._kept = partial(KnownBias._kept, bias)
    return KnownBias.known(bias, "cell", 2)


def _xspace() -> bytes:
    """Write a trace with one event of one line, and an empty program."""

    def of(number: int, inside: bytes) -> bytes:
        return protobuf.before_bytes(number, len(inside)) + inside

    event = b"".join(protobuf.number_field(number, 1) for number in (1, 2, 3))
    line = protobuf.number_field(1, 7) + of(2, b"thread") + of(4, event)
    name = protobuf.number_field(1, 1) + of(2, protobuf.number_field(1, 1) + of(2, b"conv1"))
    host = of(2, xspace.HOST.encode()) + of(3, line) + of(4, name) + of(5, name)
    modules = of(2, xspace.MODULES.encode()) + of(4, name) + of(5, name)
    return of(1, host) + of(1, modules)


def _traced(data: bytes, folder: Path) -> object:
    read = xspace.read(str(laid(data, folder, "trace/one.xplane.pb").parent))
    return [hlo_names.instructions(one) for one in (memoryview(data), *read.modules)]


_OF_ATTRIBUTION = ("harness/store/record_readers/attribution", "harness/analysis/explain/cells")
_OF_TRACES = ("harness/store/record_readers/traced_steps", "harness/sections/contract/cell_traces")
PARSERS = (
    Parser(
        "attribution, explained",
        _of("attributed", "cells/*/attribution/events.0.jsonl"),
        _in("attributed", "cells/*/attribution/events.0.jsonl", _explained),
        _OF_ATTRIBUTION,
        is_json=True,
        share=0.01,
    ),
    Parser(
        "traced steps, exported",
        texts(json.dumps(TRACED)),
        _in("attributed", "cells/*/attribution/traced.json", _exported),
        _OF_TRACES,
        is_json=True,
        share=0.01,
    ),
    Parser(
        "ceilings.json",
        _of("ceilings", "ceilings.json"),
        _in("ceilings", "ceilings.json", _limits),
        ("harness/store/record_readers/ceilings",),
        is_json=True,
        share=0.01,
    ),
    Parser(
        "ceilings' events",
        _of("ceilings", "cells/*/ceilings/events.0.jsonl"),
        _in("ceilings", "cells/*/ceilings/events.0.jsonl", _reached),
        ("harness/store/record_readers/ceilings",),
        is_json=True,
        share=0.1,
    ),
    Parser(
        "ceilings that are kept",
        _of("ceilings", "ceilings.json"),
        _kept(lambda: known_ceilings._file("p"), lambda: known_ceilings.known("p")),
        ("harness/doctor/known_ceilings",),
        is_json=True,
        refuses=(),
        share=0.3,
    ),
    Parser(
        "floors that are kept",
        texts(json.dumps(_FLOORS)),
        _kept(lambda: kept_floors._file({}), lambda: kept_floors.kept_floors({})),
        ("harness/analysis/floors/kept_floors",),
        is_json=True,
        refuses=(),
        share=0.3,
    ),
    Parser(
        "noise that is kept",
        texts(json.dumps(_NOISE)),
        _noise,
        ("harness/doctor/known_noise",),
        is_json=True,
        refuses=(),
        share=0.3,
    ),
    Parser(
        "turns' bias that is kept",
        texts('{"run": "a", "logs": [0.01, -0.02]}\n{"run": "b", "logs": [0.5]}\n'),
        _bias,
        ("harness/run/turns/known_bias",),
        is_json=True,
        refuses=(),
        share=0.3,
    ),
    Parser(
        "profilers' traces",
        lambda _: [_xspace()],
        _traced,
        ("harness/worker/attribution/xspace", "harness/worker/attribution/hlo_names"),
        refuses=(ValueError,),
        share=0.3,
    ),
)
