"""The architecture: layers, no cycles, the node wall, cheap start-up."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
OURS = ("bakeoff", "harness", "workloads", "platforms", "reports", "studies")

# A floor may import the floors before it, and itself only within one part.
FLOORS = (
    (
        "harness.worker",
        "harness.stats",
        "harness.errors",
        "harness.units",
        "harness.blas_threads",
        "harness.child_process",
        "harness.file_digest",
        "harness.private_file",
        "harness.user_folders",
        "harness.waiting",
        "harness.locks",
    ),
    (
        "workloads",
        "harness.toml",
        "harness.machine",
        "harness.data",
        "harness.store",
        "harness.plugins",
        "harness.commands",
        "harness.exact",
    ),
    (
        "harness.study",
        "harness.platform",
        "harness.collect",
        "harness.verdicts",
        "harness.gate.tensors",
    ),
    ("harness.plan", "harness.agent", "harness.analysis"),
    ("harness.launch", "harness.sections"),
    ("harness.ranks", "harness.launch.launchers", "reports"),
    ("harness.environments",),
    ("harness.gate", "harness.probe", "harness.doctor"),
    ("harness.run", "bakeoff"),
    ("harness.cli",),
)
FLOOR_OF = {part: number for number, parts in enumerate(FLOORS) for part in parts}
PASSIVE = ("platforms", "studies")  # data beside a docstring

# What costs too much for `--help`, `plan` and `list`.
HEAVY = ("numpy", "scipy", "duckdb", "rich", "jinja2", "psutil", "pynvml")


def modules() -> dict[str, Path]:
    found = {}
    for package in OURS:
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


def part_of(module: str) -> str:
    for part in sorted([*FLOOR_OF, *PASSIVE], key=len, reverse=True):
        if module == part or module.startswith(part + "."):
            return part
    return module


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports here are absolute"
            assert node.module is not None
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def own_imports(module: str) -> set[str]:
    return {name for name in imports(MODULES[module]) if name in MODULES and name != module}


def test_every_module_belongs_to_a_floor() -> None:
    homeless = [name for name in MODULES if part_of(name) == name and name not in FLOOR_OF]
    assert [name for name in homeless if name not in ("harness", *PASSIVE)] == []


@pytest.mark.parametrize("module", sorted(MODULES))
def test_imports_point_down_the_layers(module: str) -> None:
    part = part_of(module)
    if part in PASSIVE or module == "harness":
        assert own_imports(module) == set()
        return
    for imported in own_imports(module):
        other = part_of(imported)
        if other in (part, "harness") or other in PASSIVE:
            continue
        assert FLOOR_OF[other] < FLOOR_OF[part], f"{module} imports {imported}"


def test_no_import_leads_back_to_itself() -> None:
    graph = {module: own_imports(module) - {part_of(module)} for module in MODULES}
    done: set[str] = set()

    def visit(module: str, path: tuple[str, ...]) -> None:
        assert module not in path, " -> ".join([*path[path.index(module) :], module])
        if module not in done:
            for imported in sorted(graph[module]):
                visit(imported, (*path, module))
            done.add(module)

    for module in graph:
        visit(module, ())


def test_the_gate_s_reference_reads_definitions_only() -> None:
    definitions = {
        f"harness.worker.{name}"
        for name in (
            "network.layers",
            "network.sequence_layers",
            "network.shapes",
            "network.workload",
        )
    }
    for module in MODULES:
        if module.startswith("harness.exact"):
            others = {one for one in own_imports(module) if not one.startswith("harness.exact")}
            assert others <= definitions


MARKERS = [p for p in MODULES.values() if p.name == "__init__.py" and p.parent.name != "bakeoff"]


@pytest.mark.parametrize("path", MARKERS, ids=lambda p: p.parent.name)
def test_a_package_marker_holds_one_docstring(path: Path) -> None:
    body = ast.parse(path.read_text(encoding="utf-8")).body
    assert len(body) == 1
    assert isinstance(body[0], ast.Expr)


WORKER = [m for m in MODULES if m.startswith(("harness.worker", "workloads"))]
MAY_IMPORT_A_FRAMEWORK = ("harness.worker.adapters.", "harness.worker.readers.")


@pytest.mark.parametrize("module", WORKER)
def test_the_worker_side_needs_the_standard_library_only(module: str) -> None:
    tree = ast.parse(MODULES[module].read_text(encoding="utf-8"), feature_version=(3, 7))
    if module.startswith(MAY_IMPORT_A_FRAMEWORK):
        return
    for name in imports(MODULES[module]):
        top = name.split(".")[0]
        allowed = top in sys.stdlib_module_names or top == "workloads"
        assert allowed or name.startswith("harness.worker") or name == "harness", (module, name)
    assert tree.body


def test_no_framework_is_imported_on_the_host_side() -> None:
    frameworks = {"torch", "tensorflow", "keras", "jax", "tinygrad", "horovod", "singa", "caffe"}
    for module in MODULES:
        if module not in WORKER:
            tops = {name.split(".")[0] for name in imports(MODULES[module])}
            assert not tops & frameworks, module


@pytest.mark.parametrize(
    "command",
    [
        ["--help"],
        ["plan", "quickstart"],
        ["list", "workloads"],
        ["list", "frameworks"],
        ["list", "platforms"],
        ["list", "studies"],
        ["list", "runs"],
    ],
    ids=" ".join,
)
def test_looking_around_imports_nothing_heavy(command: list[str], tmp_path: Path) -> None:
    script = (
        "import sys; from harness.cli.main import main\n"
        "try:\n    main(sys.argv[1:])\n"
        "except SystemExit as end:\n    assert end.code == 0, end.code\n"
        f"print('HEAVY', sorted(set(sys.modules) & set({HEAVY!r})))"
    )
    result = subprocess.run(
        [sys.executable, "-c", script, *command],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout.splitlines()[-1] == "HEAVY []"


# A folder holds about a dozen files, unless they are plug-ins of one kind.
MOST_FILES = 14
LONGER = {
    "workloads": "plug-ins: one file a workload",
    "harness/collect/sources": "plug-ins: one file a source of readings",
    "harness/sections": "plug-ins: one file a section",
    "harness/cli/verbs": "one file a verb",
}


@pytest.mark.parametrize("folder", sorted({path.parent for path in MODULES.values()}), ids=str)
def test_a_folder_holds_one_concept(folder: Path) -> None:
    name = str(folder.relative_to(ROOT))
    files = [path for path in folder.glob("*.py") if path.name != "__init__.py"]
    assert len(files) <= MOST_FILES or name in LONGER, f"{name} holds {len(files)} files"
