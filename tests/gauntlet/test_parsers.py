"""Each module that reads what others write is given damaged input, or says here why not."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tests.gauntlet.parsers.every import PARSERS
from tests.gauntlet.parsers.parser import ROOT

_READS = re.compile(
    r"\bjson\.loads?\(|json_text import .*\bparse|json_text\.parse|tomllib\.loads?\("
    r"|\.unpack(_from)?\(|\.frombytes\(|\.fromfile\(|\bread_small\(|\bread_json\("
    r"|\bparse_line\(|ElementTree import (?!Element\b)|\bfromstring\(|pickle\.loads"
)
_OTHERWISE = {
    "harness/agent/connections": "the kernel's tables, read of ranks that are stuck",
    "harness/agent/shim": "the kernel says whose the other end of a socket is",
    "harness/agent/shim_socket": "only processes of this user are heard",
    "harness/agent/turns/turns": "the agent's own ranks, over sockets that they inherit",
    "harness/cli/verbs/init": "the study that it is about to write",
    "harness/collect/nvlink_counters": "numbers that NVIDIA's library puts into our memory",
    "harness/collect/nvml_fields": "numbers that NVIDIA's library puts into our memory",
    "harness/collect/nvml_readings": "numbers that NVIDIA's library puts into our memory",
    "harness/environments/from_source/source_recipe": "our own files",
    "harness/environments/offline/own_wheel": "what an installer noted of this very program",
    "harness/gate/kept_parts": "this user's own cache, of files that are whole or not there",
    "harness/locks": "at most 256 bytes, and tests/gauntlet/attacks.py plants them",
    "harness/machine/share": "lines of the kernel's, which the machine's reader reads as well",
    "harness/run/crowded": "a line of the kernel's, which the machine's reader reads as well",
    "harness/run/turns/memory": "lines of the kernel's, which the machine's reader reads as well",
    "harness/stats/power": "our own file",
    "harness/store/files": "the careful reader that others call",
    "harness/store/paths/birth": "numbers that the kernel puts into our memory",
    "harness/store/sql/queries": "texts in rows; what is no JSON is shown as it is",
    "harness/study/recorded_variables": "files of installed frameworks; a wrong one says nothing",
    "reports/exports/paper_answers": "our own file",
    "harness/worker/adapters/caffe/subject": "tensors that the host lays out for its rank",
    "harness/worker/adapters/singa/subject": "tensors that the host lays out for its rank",
    "harness/worker/adapters/tensorflow/strategies/servers": "a variable that the host sets",
    "harness/worker/adapters/tinygrad/subject": "tensors that the host lays out for its rank",
    "harness/worker/facts/network_use": "numbers that the kernel puts into our memory",
    "harness/worker/input/evidence/imprints": "numbers, any of which is one",
    "harness/worker/input/evidence/stored_numbers": "stretches that a loader read a moment before",
    "harness/worker/input/loaders/asynchronous": "a process's own bytes",
    "harness/worker/windows/turns": "the rank's own agent, over a socket that it inherits",
}
"""Modules that are given none, and why."""


def _readers() -> Iterator[str]:
    for folder in ("harness", "reports", "workloads"):
        for file in (ROOT / folder).rglob("*.py"):
            if _READS.search(file.read_text(encoding="utf-8")):
                yield str(file.relative_to(ROOT).with_suffix(""))


def test_what_reads_foreign_text_is_given_damaged_input() -> None:
    known = {module for parser in PARSERS for module in parser.modules}
    missing = sorted(set(_readers()) - known - _OTHERWISE.keys())
    assert not missing, f"add a Parser in tests/gauntlet/parsers for {missing}"


def test_no_module_is_named_that_is_gone() -> None:
    named = {module for parser in PARSERS for module in parser.modules} | _OTHERWISE.keys()
    assert [one for one in sorted(named) if not (ROOT / f"{one}.py").is_file()] == []


def test_no_two_parsers_have_one_name() -> None:
    names = [parser.name for parser in PARSERS]
    assert len(names) == len(set(names))
