"""Every planted fault still changes the source that it was made for, which only long forms run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gate.proof.planted import at_once
from tests.gate.proof.planted.fault import Fault
from tests.gate.proof.test_planted_faults import PLANTED
from tests.gate.proof.test_rank_faults import PLANTED as PLANTED_IN_RANKS

ROOT = Path(__file__).parents[3]
TABLES: dict[str, tuple[str, dict[str, Fault]]] = {
    **{name: (module.FOLDER, module.FAULTS) for name, module in PLANTED.items()},
    **{" ".join(name): (folder, faults) for name, (_, folder, faults) in PLANTED_IN_RANKS.items()},
}


@pytest.mark.parametrize("table", TABLES)
def test_a_fault_changes_what_stands_in_its_file_into_another_program(table: str) -> None:
    folder, faults = TABLES[table]
    for name, (_, file, (old, new), _) in faults.items():
        text = (ROOT / folder / file).read_text("utf-8")
        assert old in text, f"{name}: {file} has changed"
        assert old != new, f"{name} plants nothing"
        compile(text.replace(old, new), f"{name}: {file}", "exec")


@pytest.mark.parametrize("name", at_once.CHANGES)
def test_a_batch_at_once_changes_what_stands_in_its_file(name: str) -> None:
    file, (old, new) = at_once.CHANGES[name]
    text = (ROOT / file).read_text("utf-8")
    assert old in text, f"{file} has changed"
    compile(text.replace(old, new), file, "exec")
