"""What programs print: frameworks, schedulers, pip, nodes that are asked what they are."""

from __future__ import annotations

import hashlib
import io
import json
import os
import sys
import tarfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from harness import commands, plugins
from harness.agent import protocol
from harness.environments import pythons, verify, worker_python
from harness.environments.lock import EnvironmentReference
from harness.environments.offline import archive, install
from harness.environments.offline.lock_text import read_lock
from harness.environments.package_index import pip, pip_for_nodes
from harness.environments.worker_variables import WorkerVariables
from harness.errors import BakeoffError
from harness.gate.conditions import read_processors
from harness.launch import profile_topology
from harness.machine import hwloc_topology, surroundings
from harness.platform.platform import Platform
from harness.probe import remote
from harness.ranks import node_offer
from harness.run import provenance
from harness.run.unattended import queue
from harness.worker.adapters.caffe import log as caffe_log
from harness.worker.adapters.caffe import prototxt
from harness.worker.facts import hlo, onednn
from harness.worker.facts.node_survey import survey
from tests.gauntlet.parsers.parser import Parse, Parser, as_text, contents_of, laid, texts

_NEAR_NS = 1_790_000_000_000_000_000
_GREETING = b"Welcome to node1\n"
JOBS = (queue.JobInQueue(1, "41", 1, 10, ("k",)), queue.JobInQueue(2, "42", 1, 10, ("k",), 3))


def _caffe(data: bytes, _: Path) -> object:
    log = caffe_log.Log(_NEAR_NS)
    for line in as_text(data).splitlines():
        log.add(line)
    return log.steps()


def _there(data: bytes, _: Path) -> object:
    """Look at a node through what it printed."""
    answer = type("Answer", (), {"code": 0, "stdout": as_text(data), "stderr": ""})()
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


def _read(launcher: str, program: str, said: str) -> Parser:
    """Give the parser of what a program of another queue prints of jobs."""
    module = plugins.load("launchers", launcher)

    def parse(data: bytes, _: Path) -> object:
        return module.read_states(as_text(data)), module.read_ends(as_text(data))

    modules = (f"harness/launch/launchers/{launcher}", "harness/launch/queue_answers")
    return Parser(program, texts(said), parse, modules, is_json=True, share=0.5)


def _slurm(program: str, said: str, ask: Callable[[Any], object]) -> Parser:
    """Give the parser of what a program of Slurm prints."""

    def parse(data: bytes, _: Path) -> object:
        earlier, queue._asked = queue._asked, lambda *_, **__: as_text(data)
        try:
            return ask(_SLURM)
        finally:
            queue._asked = earlier

    return Parser(program, texts(said), parse, ("harness/run/unattended/queue",), share=0.5)


def _agent(data: bytes, _: Path) -> object:
    said = protocol.Lines().feed(data)
    return [protocol.read_end(one) for one in said if one["say"] == "ended"]


def _printed(ask: Callable[[], object]) -> Parse:
    """Have every command print the damaged text."""

    def parse(data: bytes, _: Path) -> object:
        answer = commands.Answer("it", 0, as_text(data), "")
        earlier, commands.run = commands.run, lambda *_, **__: answer
        try:
            return ask()
        finally:
            commands.run = earlier

    return parse


class _Installer(pip.Installer):
    """pip, whose report is the damaged text."""

    report = b""

    def run(self, *arguments: str, **_: Any) -> None:
        Path(arguments[arguments.index("--report") + 1]).write_bytes(self.report)


def _pip(data: bytes, _: Path) -> object:
    installer = _Installer(("pip",), Path("python"))
    object.__setattr__(installer, "report", data)
    return installer.plan(["torch"], {})


def _manifest(data: bytes, _: Path) -> object:
    try:
        return install.read_manifest(data)
    except install.Refused as problem:
        raise BakeoffError(str(problem)) from None


def _archives(_: Path) -> Sequence[bytes]:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.GNU_FORMAT) as file:
        for name, content in (("pack.json", json.dumps(_MANIFEST).encode()), ("data.sh", b"# a\n")):
            info = tarfile.TarInfo(f"it/{name}")
            info.size = len(content)
            file.addfile(info, io.BytesIO(content))
    return [made.getvalue()]


def _archive(data: bytes, folder: Path) -> object:
    with archive.opened(laid(data, folder, "it.tar")) as opened:
        return opened.manifest


def _python_there(data: bytes, _: Path) -> object:
    node: Any = type("Node", (), {"run": lambda *_: as_text(data), "name": "n1"})()
    found = pip_for_nodes.find(node, ">=3.7", explicit=None, purpose="torch")
    return found.tags


def _named_python() -> object:
    there: Any = None
    given = WorkerVariables(there, {}, {"PATH": os.environ["PATH"]})
    reference = EnvironmentReference.parse("torch")
    return worker_python._foreign(reference, sys.executable, given, "the platform's")


_REPORT = {
    "version": "1",
    "install": [
        {
            "metadata": {"name": "torch", "version": "2.1"},
            "download_info": {
                "url": "https://x/torch.whl",
                "archive_info": {"hashes": {"sha256": "0" * 64}},
            },
        }
    ],
}
_PBS_JOB = {
    "job_state": "F",
    "Exit_status": 271,
    "resources_used": {"walltime": "00:06:21"},
    "comment": "over",
}
_LSF_JOB = {
    "JOBID": "41",
    "STAT": "EXIT",
    "EXIT_CODE": "140",
    "RUN_TIME": "3725 second(s)",
    "PEND_REASON": "",
    "EXIT_REASON": "TERM_RUNLIMIT",
}
_MANIFEST = {
    "version": 1,
    "bakeoff": "0.1.0",
    "pip": "data.sh",
    "without": ["numpy>=2.0"],
    "target": {"python": "3.12", "machine": "x86_64", "libc": "glibc 2.28"},
    "environments": [],
    "files": {"data.sh": {"bytes": 4, "sha256": hashlib.sha256(b"# a\n").hexdigest()}},
}
_PYTHON_THERE = {
    "path": "/usr/bin/python3",
    "version": [3, 11, 7],
    "libc": ["glibc", "2.36"],
    "markers": {
        "platform_python_implementation": "CPython",
        "platform_machine": "x86_64",
        "platform_system": "Linux",
        "python_full_version": "3.11.7",
    },
}
_PYTHON = {
    "path": "/usr/bin/python3",
    "version": [3, 11, 7],
    "implementation": "cpython",
    "machine": "x86_64",
    "system": "linux",
}
_XML = """<?xml version="1.0"?><!DOCTYPE topology SYSTEM "hwloc2.dtd"><topology version="2.0">
<object type="Machine" cpuset="0x00000003" allowed_cpuset="0x00000003" nodeset="0x1">
<object type="NUMANode" os_index="0" cpuset="0x00000003" local_memory="8589934592"/>
<object type="Package" os_index="0" cpuset="0x00000003"><object type="L2Cache" cpuset="0x3">
<object type="Core" os_index="0" cpuset="0x3"><object type="PU" os_index="0" cpuset="0x1"/>
<object type="PU" os_index="1" cpuset="0x2"/></object></object></object></object></topology>
"""
_MATRIX = "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV2\t0-19\nGPU1\tNV2\t X \t0-19\n"
_TABLE = "GPU-1a, NVIDIA H100, 550.54, 81559, Enabled, Disabled, 700.00\n"
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
_STATUS = """# branch.oid 1234567890abcdef
# branch.head main
1 .M N... 100644 100644 100644 1 2 harness/x.py
? new.py
"""


def _offers(_: Path) -> Sequence[bytes]:
    return [json.dumps(node_offer.offer(2)).encode()]


PARSERS = (
    Parser(
        "Caffe logs",
        contents_of("tests/adapters/caffe/logs", "*.log"),
        _caffe,
        ("harness/worker/adapters/caffe/log",),
        share=0.3,
    ),
    Parser(
        "prototxt",
        contents_of("tests/golden/caffe", "*.prototxt"),
        lambda data, _: prototxt.read(as_text(data)),
        ("harness/worker/adapters/caffe/prototxt", "harness/worker/adapters/caffe/adapter"),
        refuses=(ValueError,),
        share=0.5,
    ),
    Parser(
        "XLA's text",
        texts(_HLO),
        lambda data, _: hlo.read(as_text(data)),
        ("harness/worker/facts/hlo",),
    ),
    Parser(
        "oneDNN's text",
        texts(_ONEDNN),
        lambda data, _: (
            onednn.read(as_text(data).splitlines(), 3),
            onednn.instruction_set(as_text(data).splitlines()),
        ),
        ("harness/worker/facts/onednn",),
    ),
    Parser(
        "synthetic topologies",
        texts("pack:2 [numa(memory=16GiB)] l2:4 core:2 pu:2", "numa:2 core:4 pu:1"),
        lambda data, _: profile_topology.read_synthetic(as_text(data)),
        ("harness/launch/profile_topology",),
    ),
    Parser(
        "hwloc XML",
        texts(_XML),
        lambda data, _: hwloc_topology.read_hwloc(as_text(data)),
        ("harness/machine/hwloc_topology",),
    ),
    Parser(
        "nodes' surveys",
        _surveyed,
        _there,
        ("harness/probe/remote", "harness/worker/facts/node_survey"),
        is_json=True,
        share=0.02,
    ),
    Parser(
        "nvidia-smi's links",
        texts(_MATRIX),
        lambda data, _: remote.links(as_text(data)),
        ("harness/probe/remote",),
    ),
    Parser(
        "nvidia-smi's table",
        texts(_TABLE),
        lambda data, _: remote._gpus(as_text(data)),
        ("harness/probe/remote",),
        refuses=(ValueError,),  # look_there refuses the node then
    ),
    Parser(
        "launchers' versions",
        texts("slurm 23.02.7\n", "mpirun (Open MPI) 4.1.4\n\nReport bugs to x\n"),
        lambda data, _: surroundings.read_launchers(
            dict.fromkeys(("slurm", "mpirun", "partitions"), as_text(data))
        ),
        ("harness/machine/surroundings",),
        share=0.5,
    ),
    _slurm(
        "squeue",
        "41 RUNNING 1:00 None\n42_1 PENDING 0:00 Priority\n",
        lambda there: queue.states(there, JOBS),
    ),
    _slurm(
        "sacct",
        "41|COMPLETED|00:01:00\n42_1|CANCELLED by 1000|00:00:10\n",
        lambda there: queue.ends(there, JOBS),
    ),
    _read("pbs", "qstat", json.dumps({"Jobs": {"41.pbs01": _PBS_JOB}})),
    _read("lsf", "bjobs", json.dumps({"JOBS": 1, "RECORDS": [_LSF_JOB]})),
    _slurm("sinfo", "12/4\n1/2\n", queue.free),
    Parser(
        "agents' messages",
        texts('{"say":"ready","pid":1}\n{"say":"beat"}\n'),
        _agent,
        ("harness/agent/protocol",),
        is_json=True,
    ),
    Parser(
        "nodes' offers",
        _offers,
        lambda data, _: node_offer.read_offer(as_text(data), "n1"),
        ("harness/ranks/node_offer", "harness/ranks/nodes"),
        is_json=True,
    ),
    Parser(
        "nodes' processors",
        texts('{"cpu": ["x86_64", "AMD EPYC", "avx2"], "gpus": []}'),
        lambda data, _: read_processors(as_text(data), "n1"),
        ("harness/gate/conditions",),
        is_json=True,
        share=0.5,
    ),
    Parser(
        "Pythons that a platform names",
        texts('3.11.7 main\n["3.11.7 (main)", ["torch-2.1.dist-info"], ["/site"]]'),
        _printed(_named_python),
        ("harness/environments/worker_python",),
        is_json=True,
        share=0.5,
    ),
    Parser(
        "pip's report",
        texts(json.dumps(_REPORT)),
        _pip,
        ("harness/environments/package_index/pip",),
        is_json=True,
        share=0.5,
    ),
    Parser(
        "an archive's manifest",
        texts(json.dumps(_MANIFEST)),
        _manifest,
        ("harness/environments/offline/install",),
        is_json=True,
    ),
    Parser(
        "archives",
        _archives,
        _archive,
        ("harness/environments/offline/archive",),
    ),
    Parser(
        "an archive's lock",
        texts(f"torch==2.1 --hash=sha256:{'0' * 64}\n"),
        lambda data, _: read_lock(as_text(data), {"0" * 64: "file:///torch.whl"}),
        ("harness/environments/offline/lock_text",),
        refuses=(install.Refused,),
    ),
    Parser(
        "Pythons of nodes",
        texts(json.dumps(_PYTHON_THERE) + "\n", "Welcome\n" + json.dumps(_PYTHON_THERE) + "\n"),
        _python_there,
        ("harness/environments/package_index/pip_for_nodes",),
        is_json=True,
        share=0.5,
    ),
    Parser(
        "Pythons of this machine",
        texts(json.dumps(_PYTHON)),
        _printed(lambda: pythons.inspect("python3")),
        ("harness/environments/pythons",),
        is_json=True,
    ),
    Parser(
        "what was imported",
        texts('noise\n["3.11.7", ["2.1", "1.2"]]'),
        _printed(lambda: verify.imported(["python3"], ["torch"])),
        ("harness/environments/verify",),
        is_json=True,
    ),
    Parser(
        "git's status",
        texts(_STATUS),
        _printed(lambda: provenance.git_state(Path())),
        ("harness/run/provenance",),
    ),
)
