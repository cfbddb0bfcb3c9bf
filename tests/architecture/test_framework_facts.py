"""What is known about one framework stands in that framework's folder, and nowhere on the host."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from harness import plugins
from harness.study.framework import ALONE, read_framework
from tests.architecture.test_structure import MODULES, ROOT, WORKER

SHARED_WORDS = {
    "null",  # JSON's and the shell's word
    "mpi",  # what launchers start ranks through, and containers bring along
    ALONE,
}

STARTER = "horovodrun is a starter of ranks beside mpirun"
EXAMPLE = "an example in a message"
DEFAULT = "an option's default"
CLAIM = "a paper's claim"
DECLARED = {
    ("harness.agent.shim", "horovod"): STARTER,
    ("harness.agent.shim", "HOROVOD_"): STARTER,
    ("harness.launch.launchers.mpirun", "horovod"): STARTER,
    ("harness.cli.verbs.platforms_calibrate", "torch"): DEFAULT,
    ("harness.cli.verbs.doctor_sweep", "torch"): DEFAULT,
    ("harness.cli.verbs.layers", "torch"): DEFAULT,
    ("harness.cli.verbs.init", "torch"): DEFAULT,
    ("harness.cli.verbs.screen", "torch"): DEFAULT,
    ("harness.cli.verbs.env", "torch"): EXAMPLE,
    ("harness.cli.study_options", "torch"): EXAMPLE,
    ("harness.doctor.installation", "torch"): EXAMPLE,
    ("harness.environments.lock", "tensorflow"): EXAMPLE,
    ("harness.environments.lock", "torch"): EXAMPLE,
    ("harness.gate.everything_study", "torch"): EXAMPLE,
    ("harness.platform.skeleton", "torch"): EXAMPLE,
    ("harness.study.checks", "torch"): EXAMPLE,
    ("harness.analysis.context.closest_figure", "caffe"): "a workload's name",
    ("harness.study.claims", "caffe"): CLAIM,
    ("harness.study.claims", "singa"): CLAIM,
    ("harness.study.claims", "tensorflow"): CLAIM,
}
"""(module, word) -> why it may stand there. A new entry needs a better reason than being handy."""


def words() -> dict[str, re.Pattern[str]]:
    """Give what only a framework's own folder may say: names, strategies, readers, variables."""
    found: dict[str, re.Pattern[str]] = {}
    for name, entry in plugins.files("adapters").items():
        info = read_framework(entry.path)
        found[name] = re.compile(re.escape(name), re.IGNORECASE)
        for one in (*info.strategies, *info.readers):
            found[one] = re.compile(rf"(?<![a-z0-9-]){re.escape(one)}", re.IGNORECASE)
        for strategy in (ALONE, *info.strategies):
            own = info.rank_variables(strategy, {})
            for variable in (*own.steering, *own.caches, *own.every_rank, *own.several_ranks):
                stem = variable.rstrip("*")
                found[stem] = re.compile(
                    rf"(?<![A-Za-z0-9_]){re.escape(stem)}" + "\\b" * (stem == variable)
                )
    return {word: pattern for word, pattern in found.items() if word not in SHARED_WORDS}


def spoken(module: str) -> Iterator[str]:
    """Give every name and string of a module; docstrings and comments may name whom they like."""
    tree = ast.parse(MODULES[module].read_text(encoding="utf-8"))
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.value
        elif isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name


def test_no_host_file_names_a_framework_outside_declared_places() -> None:
    wanted = words()
    texts = {module: "\n".join(set(spoken(module))) for module in MODULES if module not in WORKER}
    found = {
        (module, word)
        for module, text in texts.items()
        for word, pattern in wanted.items()
        if pattern.search(text)
    }
    assert found == set(DECLARED)


def test_the_words_that_are_looked_for_are_those_of_the_frameworks_files() -> None:
    expected = {"torch", "tensorflow", "keras", "jax", "tinygrad", "caffe", "singa", "horovod"}
    expected |= {"ddp", "several-gpus", "tf-data", "data-layer", "TF_", "BEAM", "TF_CONFIG"}
    assert expected <= set(words())


def test_no_adapter_asks_what_its_job_is_for() -> None:
    asking = [
        path
        for path in (ROOT / "harness/worker/adapters").rglob("*.py")
        if ".purpose" in path.read_text(encoding="utf-8")
    ]
    assert asking == []
