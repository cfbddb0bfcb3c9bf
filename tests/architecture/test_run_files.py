"""One module opens what lies in a run directory; who opens anything else is listed with it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROOMS = (
    "harness/store",
    "harness/run",
    "harness/gate",
    "harness/ranks",
    "harness/verdicts",
    "harness/analysis",
    "harness/sections",
    "harness/cli",
    "reports",
)
OPENING = {
    *("open", "read_text", "write_text", "read_bytes", "write_bytes", "touch", "symlink_to"),
    *("iterdir", "glob", "rglob", "listdir", "scandir", "mkdir", "makedirs", "rename", "unlink"),
    *("rmdir", "rmtree", "copytree", "copyfile", "move", "mkdtemp", "mkstemp", "hardlink_to"),
    *("read_json", "write_json", "write_whole"),
}
CONTAINED = ("harness/store/contained.py", "harness/store/paths/handles.py")
OTHERS = {
    "harness/store/bounded_cache.py": "a cache of the user's",
    "harness/store/files.py": "files that a user names",
    "harness/store/run_directory/find_runs.py": "a folder of runs",
    "harness/store/run_directory/opening.py": "the run directory itself, while it is made",
    "harness/store/samples/sample_parquet.py": "what DuckDB wrote to a temporary folder",
    "harness/store/sql/tables.py": "a handle by which DuckDB opens files that were checked",
    "harness/gate/feed/examination.py": "our own code",
    "harness/gate/feed/known_samples.py": "pictures in memory",
    "harness/gate/cell_gate.py": "our own code",
    "harness/gate/jobs.py": "a folder of the gate's own, for one job",
    "harness/gate/kept_parts.py": "the user's own cache",
    "harness/gate/proof/proofs.py": "the user's own cache, and our own code",
    "harness/gate/reference.py": "our own code",
    "harness/run/storage/lustre.py": "folders on a storage tier",
    "harness/run/storage/tiers.py": "folders on a storage tier",
    "harness/run/trust.py": "the user's own state folder",
    "harness/run/turns/known_bias.py": "the user's own state folder",
    "harness/ranks/interrupts.py": "a pipe",
    "harness/ranks/on_nodes.py": "a pipe",
    "harness/ranks/payload.py": "the worker side as it is installed, and copies just checked",
    "harness/analysis/context/published_figures.py": "the user's published figures",
    "harness/analysis/floors/kept_floors.py": "the user's own state folder",
    "harness/analysis/read.py": "a folder of runs",
    "harness/cli/completion.py": "names in the current folder",
    "harness/cli/output.py": "/dev/null",
    "harness/cli/verbs/collect.py": "a recording that the user names",
    "harness/cli/verbs/compare.py": "a file that the user names",
    "harness/cli/verbs/data.py": "data sets",
    "harness/cli/verbs/export.py": "a file that the user names",
    "harness/cli/verbs/platforms_calibrate.py": "a profile that the user names",
    "harness/cli/verbs/init.py": "a study that the user names",
    "harness/cli/verbs/platforms_probe.py": "a profile that the user names",
    "reports/exports/paper_answers.py": "our own documents",
    "reports/exports/papers_page.py": "our own documents",
    "harness/cli/verbs/predict.py": "a drawing that the user names",
    "harness/cli/verbs/reference.py": "the user's published figures",
    "harness/cli/verbs/report.py": "a browser",
    "reports/exports/formats/parquet.py": "a temporary folder",
    "reports/exports/results_schema.py": "our own schema",
    "reports/figures/converted.py": "a temporary folder",
    "reports/figures/standalone.py": "our own styles",
    "reports/page/files.py": "a pipe that the user names",
    "reports/page/page.py": "our own assets and the cache of templates",
}


def opened(path: Path) -> list[str]:
    """Name what a module opens by itself: calls on ``files`` are the one module's."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call):
            continue
        call = node.func
        name = getattr(call, "attr", getattr(call, "id", None))
        owner = ast.unparse(call.value) if isinstance(call, ast.Attribute) else ""
        is_ours = owner.rpartition(".")[2] in ("files", "_files", "into", "run")
        if name in OPENING and not is_ours and not owner.startswith("Contained("):
            found.append(f"{path.relative_to(ROOT)}:{node.lineno}: {ast.unparse(call)}")
    return found


@pytest.mark.parametrize("room", ROOMS)
def test_only_one_module_opens_what_lies_in_a_run_directory(room: str) -> None:
    strange = [
        line
        for path in sorted((ROOT / room).rglob("*.py"))
        if str(path.relative_to(ROOT)) not in (*CONTAINED, *OTHERS)
        for line in opened(path)
    ]
    assert strange == []


def test_who_is_listed_opens_something() -> None:
    assert [name for name in OTHERS if not (ROOT / name).exists() or not opened(ROOT / name)] == []
