"""Every parser of text and bytes that others write, each with valid examples to be damaged."""

from __future__ import annotations

import json
import shutil
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import units
from harness.agent import protocol
from harness.analysis.context import published_figures
from harness.data import user_data
from harness.environments import cache as environment_cache
from harness.environments.lock import EnvironmentReference, parse_lock
from harness.errors import BakeoffError
from harness.launch import host_lists, profile_topology
from harness.machine import hwloc_topology
from harness.plan.plan import make_plan
from harness.platform.platform import Platform, load_platform
from harness.probe import remote
from harness.run import due, queue
from harness.run.setup import read_plan
from harness.store import run_directory
from harness.store.dataset import Dataset
from harness.store.events import event_lines, rank_tail
from harness.store.layout import RunPaths, TrialName, TrialPaths
from harness.store.records import read_run, read_trials
from harness.store.samples.recording import read_recording
from harness.study import requirements
from harness.study.study import load_study
from harness.worker.adapters.caffe import log as caffe_log
from harness.worker.adapters.caffe import prototxt
from harness.worker.checkpoints import checkpoint_files
from harness.worker.facts import hlo, onednn
from harness.worker.facts.node_survey import survey
from harness.worker.input import records
from harness.worker.readers import npy, npz
from tests.gauntlet import small_run
from tests.gauntlet.command import run

ROOT = Path(__file__).resolve().parents[2]
_LOGS = ROOT / "tests" / "adapters" / "caffe" / "logs"
_NEAR_NS = 1_790_000_000_000_000_000
_GREETING = b"Welcome to node1\n"

Seeds = Callable[[Path], Sequence[bytes]]


@dataclass(frozen=True)
class Parser:
    """One parser: what it reads, and what it may refuse damaged input with."""

    name: str
    seeds: Seeds
    """Takes a folder in which a small run lies."""
    parse: Callable[[bytes, Path], object]
    is_json: bool = False
    refuses: tuple[type[Exception], ...] = (BakeoffError,)
    share: float = 1.0
    """How much of the usual number of inputs it is given: less where one takes long."""


def _text(data: bytes) -> str:
    return data.decode("utf-8", errors="surrogateescape")


def _texts(*some: str) -> Seeds:
    return lambda _: [one.encode() for one in some]


def _files(folder: str, pattern: str) -> Seeds:
    return lambda _: [file.read_bytes() for file in sorted((ROOT / folder).glob(pattern))]


def small(folder: Path) -> Path:
    """Make the small run that run files are taken from."""
    place = small_run.write(folder, cells=1, blocks=2)
    if not (place / "report.html").exists():
        run(*small_run.RUN, cwd=folder, told=folder / "told")
    return place


def _of_run(*patterns: str) -> Seeds:
    return lambda folder: [
        file.read_bytes() for one in patterns for file in sorted(small(folder).glob(one))
    ]


def _in_run(pattern: str, read: Callable[[RunPaths], object]) -> Callable[[bytes, Path], object]:
    """Read a run of which one file is damaged."""

    def parse(data: bytes, folder: Path) -> object:
        place = small(folder)
        file = sorted(place.glob(pattern))[0]
        kept = file.read_bytes()
        try:
            file.write_bytes(data)
            return read(RunPaths(place))
        finally:
            file.write_bytes(kept)

    return parse


def _read_all(paths: RunPaths) -> object:
    return read_trials(read_run(paths.root))


def _run_file(
    name: str,
    pattern: str,
    read: Callable[[RunPaths], object] = _read_all,
    share: float = 0.15,
) -> Parser:
    return Parser(name, _of_run(pattern), _in_run(pattern, read), is_json=True, share=share)


def _due(paths: RunPaths) -> object:
    return due.read_due(paths).count()


def _queried(paths: RunPaths) -> object:
    return Dataset([paths.root]).sql("SELECT count(*) FROM trials")


def _file(data: bytes, folder: Path, name: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def _study(data: bytes, folder: Path) -> object:
    study = load_study(_file(data, folder, "mine.toml"))
    return make_plan(study, load_platform(str(folder / "platform.toml")))


def _caffe(data: bytes, _: Path) -> object:
    log = caffe_log.Log(_NEAR_NS)
    for line in _text(data).splitlines():
        log.add(line)
    return log.steps()


def _there(data: bytes, _: Path) -> object:
    """Look at a node through what it printed."""
    answer = type("Answer", (), {"code": 0, "stdout": _text(data), "stderr": ""})()
    node = type("Node", (), {"ask": lambda *_: answer, "launcher": "ssh"})()
    seen = remote.look_there(remote.tell(node), ["null"])
    return remote.odd_ones({"a": seen, "b": seen})


def _surveyed(_: Path) -> Sequence[bytes]:
    told = survey()
    told["files"] = {path: text[:2000] for path, text in list(told["files"].items())[:150]}
    return [_GREETING + json.dumps(told).encode(), json.dumps(told).encode()]


_SLURM = Platform.model_validate(
    {
        "name": "site",
        "title": "A site",
        "nodes": 1,
        "launcher": {"name": "slurm"},
        "node": {"cpus": 2, "memory": [{"kind": "DDR", "size": "8 GiB"}]},
        "accelerators": [],
    }
)


def _slurm(ask: Callable[[Any], object]) -> Callable[[bytes, Path], object]:
    def parse(data: bytes, _: Path) -> object:
        earlier, queue._asked = queue._asked, lambda *_, **__: _text(data)
        try:
            return ask(_SLURM)
        finally:
            queue._asked = earlier

    return parse


_JOBS = (queue.JobInQueue(1, "41", 1, 10, ("k",)), queue.JobInQueue(2, "42", 1, 10, ("k",), 3))


def _lock(data: bytes, folder: Path) -> object:
    return parse_lock("mine", _file(data, folder, "mine-lock.toml"))


def _marker(data: bytes, folder: Path) -> object:
    return environment_cache.read(_file(data, folder, "built/environment.json").parent)


def _environment_seeds(_: Path) -> Sequence[bytes]:
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


def _records_seeds(_: Path) -> Sequence[bytes]:
    samples = (b"x" * 30, b"y" * 12, b"")
    parts = [records.head(len(one)) + one + struct.pack("<I", records.masked(0)) for one in samples]
    return [b"".join(parts), parts[0]]


def _lmdb_seeds(folder: Path) -> Sequence[bytes]:
    import lmdb

    place = folder / "seed.mdb"
    with lmdb.open(str(place), subdir=False, map_size=1 << 20) as map_, map_.begin(write=True) as t:
        for number in range(40):
            t.put(b"%08d" % number, bytes(100 * number))
    return [place.read_bytes()]


def _own_files(name: str) -> Callable[[bytes, Path], object]:
    def parse(data: bytes, folder: Path) -> object:
        described = folder / "described"
        shutil.rmtree(described, ignore_errors=True)
        own = _file(data, folder, f"own/{name}")
        return user_data.adopt(own, described, doing=lambda _: None)

    return parse


def _checkpoint(data: bytes, folder: Path) -> object:
    place = folder / "saved"
    _file(data, folder, "saved/step-5/manifest.json")
    return [checkpoint_files.is_true(kept) for kept in checkpoint_files.complete(str(place))]


def _checkpoint_seeds(folder: Path) -> Sequence[bytes]:
    _file(b"state", folder, "saved/step-5/rank.0")
    size_and_digest = vars(checkpoint_files.digest(str(folder / "saved/step-5/rank.0")))
    return [json.dumps({"version": 1, "step": 5, "files": {"rank.0": size_and_digest}}).encode()]


def _npy_seeds(folder: Path) -> Sequence[bytes]:
    import numpy as np

    np.save(folder / "a.npy", np.zeros((3, 4), dtype="<f4"))
    np.savez(folder / "a.npz", np.zeros((3, 4), dtype="<f4"))
    return [(folder / "a.npy").read_bytes(), (folder / "a.npz").read_bytes()]


def _tail(data: bytes, folder: Path) -> object:
    trial = TrialPaths(folder / "trial")
    _file(data, folder, "trial/events.0.jsonl")
    return rank_tail.read_rank_tail(trial, 0), rank_tail.has_stand_in(trial, [0])


def _agent(data: bytes, _: Path) -> object:
    said = protocol.Lines().feed(data)
    return [protocol.read_end(one) for one in said if one["say"] == "ended"]


_XML = """<?xml version="1.0"?><!DOCTYPE topology SYSTEM "hwloc2.dtd"><topology version="2.0">
<object type="Machine" cpuset="0x00000003" allowed_cpuset="0x00000003" nodeset="0x1">
<object type="NUMANode" os_index="0" cpuset="0x00000003" local_memory="8589934592"/>
<object type="Package" os_index="0" cpuset="0x00000003"><object type="L2Cache" cpuset="0x3">
<object type="Core" os_index="0" cpuset="0x3"><object type="PU" os_index="0" cpuset="0x1"/>
<object type="PU" os_index="1" cpuset="0x2"/></object></object></object></object></topology>
"""
_MATRIX = "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV2\t0-19\nGPU1\tNV2\t X \t0-19\n"
_HLO = """ENTRY %main {
  %p0 = bf16[16,27,27,192]{3,2,1,0} parameter(0)
  ROOT %c = f32[16,27,27,192]{3,2,1,0} convolution(bf16[1]{0} %p0, %p0), window={size=3x3},
 dim_labels=b01f_01io->b01f
  %d = f32[4,4]{1,0} custom-call(%c), custom_call_target="__onednn$matmul"
  %f = f32[4]{0} fusion(%d), kind=kLoop
}
"""
_ONEDNN = """onednn_verbose,v1,info,cpu,isa:Intel AVX-512
onednn_verbose,v1,primitive,exec,cpu,convolution,jit:avx512_core,forward_training,\
src:f32::blocked:acdb::f0 wei:f32:a:blocked:acdb::f0,,alg:x,mb16,1.25
onednn_verbose,exec,cpu,reorder,jit:uni,undef,src_f32::blocked:abcd:f0,,,1x2,0.5
"""


def _units(data: bytes, _: Path) -> None:
    text = _text(data)
    for read in (units.seconds, units.size_bytes, units.bytes_per_second, units.flops, units.watts):
        try:
            read(text)
        except ValueError:
            continue


PARSERS = (
    Parser(
        "host lists",
        _texts("cn[001-003,7],login1", "rack[1-2]-node[01-02]", "h1 h2,user@h3"),
        lambda data, _: host_lists.unfolded(_text(data)),
    ),
    Parser("Caffe logs", _files("tests/adapters/caffe/logs", "*.log"), _caffe, share=0.3),
    Parser(
        "prototxt",
        _files("tests/golden/caffe", "*.prototxt"),
        lambda data, _: prototxt.read(_text(data)),
        refuses=(ValueError,),
        share=0.5,
    ),
    Parser("XLA's text", _texts(_HLO), lambda data, _: hlo.read(_text(data))),
    Parser(
        "oneDNN's text",
        _texts(_ONEDNN),
        lambda data, _: (
            onednn.read(_text(data).splitlines(), 3),
            onednn.instruction_set(_text(data).splitlines()),
        ),
    ),
    Parser(
        "synthetic topologies",
        _texts("pack:2 [numa(memory=16GiB)] l2:4 core:2 pu:2", "numa:2 core:4 pu:1"),
        lambda data, _: profile_topology.read_synthetic(_text(data)),
    ),
    Parser("hwloc XML", _texts(_XML), lambda data, _: hwloc_topology.read_hwloc(_text(data))),
    Parser("nodes' surveys", _surveyed, _there, is_json=True, share=0.02),
    Parser("nvidia-smi's links", _texts(_MATRIX), lambda data, _: remote.links(_text(data))),
    Parser(
        "references",
        _files("reports/references", "*.toml"),
        lambda data, _: published_figures.parse(_text(data), "x.toml"),
        share=0.1,
    ),
    Parser("units", _texts("60 s", "16 GiB", "1.5 TFLOP/s", "300 W", "2 GB/s"), _units),
    Parser(
        "environments' names",
        _texts("torch@horovod", "torch"),
        lambda data, _: EnvironmentReference.parse(_text(data)),
    ),
    Parser(
        "requirements",
        _texts("gpu_memory >= 8 GiB", "device = gpu"),
        lambda data, _: requirements.parse_needs(_text(data)),
        refuses=(BakeoffError, ValueError),
    ),
    Parser("trials' names", _texts("trial-3.2"), lambda data, _: TrialName.parse(_text(data))),
    Parser(
        "studies",
        lambda _: [file.read_bytes() for file in sorted((ROOT / "studies").glob("*.toml"))[:8]],
        _study,
        share=0.02,
    ),
    Parser(
        "platforms",
        _files("platforms", "*.toml"),
        lambda data, folder: load_platform(str(_file(data, folder, "site.toml"))),
        share=0.05,
    ),
    Parser("locks", _files("harness/environments", "*.toml"), _lock, share=0.2),
    Parser("environments' markers", _environment_seeds, _marker, is_json=True, share=0.5),
    Parser(
        "squeue",
        _texts("41 RUNNING 1:00 None\n42_1 PENDING 0:00 Priority\n"),
        _slurm(lambda there: queue.states(there, _JOBS)),
        share=0.5,
    ),
    Parser(
        "sacct",
        _texts("41|COMPLETED|00:01:00\n42_1|CANCELLED by 1000|00:00:10\n"),
        _slurm(lambda there: queue.ends(there, _JOBS)),
        share=0.5,
    ),
    Parser("sinfo", _texts("12/4\n1/2\n"), _slurm(queue.free), share=0.5),
    Parser("agents' messages", _texts('{"say":"ready","pid":1}\n{"say":"beat"}\n'), _agent, True),
    Parser(
        "event files",
        _of_run("cells/*/*/events.0.jsonl"),
        lambda data, _: event_lines.read_event_files([data, data]),
        is_json=True,
        share=0.2,
    ),
    Parser("ends of event files", _of_run("cells/*/*/events.0.jsonl"), _tail, True, share=0.5),
    Parser(
        "samples",
        _of_run("cells/*/*/samples.*.bin"),
        lambda data, folder: read_recording(_file(data, folder, "samples.n.bin")),
        share=0.3,
    ),
    Parser(
        "outcomes",
        _of_run("cells/*/*/outcome.json"),
        _in_run("cells/*/trial-1/outcome.json", lambda paths: run_directory.outcomes(paths)),
        is_json=True,
        share=0.5,
    ),
    _run_file("run.json", "run.json", lambda paths: run_directory.identity(paths)),
    _run_file("run.json, the run read", "run.json"),
    _run_file("plan.json, the run read", "plan.json"),
    _run_file("plan.json, to resume", "plan.json", read_plan),
    _run_file("provenance.json", "provenance.json"),
    _run_file("environments/*.json", "environments/*.json"),
    _run_file("gate/*.json", "gate/*.json"),
    _run_file("outcome.json, the run read", "cells/*/trial-1/outcome.json"),
    _run_file("job.json", "cells/*/trial-1/job.json"),
    _run_file("log.jsonl", "log.jsonl", _due),
    _run_file("events, queried", "cells/*/trial-1/events.0.jsonl", _queried, share=0.005),
    Parser(
        "jobs.json",
        _texts(json.dumps({"version": 1, "jobs": [vars(one) for one in _JOBS]})),
        lambda data, folder: queue.jobs(RunPaths(_file(data, folder, "queued/jobs.json").parent)),
        is_json=True,
    ),
    Parser("TFRecord files", _records_seeds, _own_files("x.tfrecord"), share=0.1),
    Parser("LMDBs", _lmdb_seeds, _own_files("data.mdb"), share=0.02),
    Parser("checkpoints' manifests", _checkpoint_seeds, _checkpoint, is_json=True, share=0.3),
    Parser(
        "npy headers",
        _npy_seeds,
        lambda data, _: npy.header(data),
        refuses=(ValueError,),
    ),
    Parser(
        "npz headers",
        _npy_seeds,
        lambda data, _: npz.entry(data, "x.npz"),
        refuses=(ValueError,),
    ),
)
