from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import DamagedFile
from harness.store.layout import RunPaths
from harness.store.paths.names import path_part, payload_name

PLANTED = [
    "",
    ".",
    "..",
    "../..",
    "a/b",
    "/etc",
    ".hidden",
    "-rf",
    "a\0b",
    "a\nb",
    "x" * 300,
    "é",
    3,
]


@pytest.mark.parametrize("name", PLANTED)
def test_a_name_that_leads_elsewhere_becomes_no_path(name):
    with pytest.raises(DamagedFile, match="cannot be a key"):
        path_part(name, "key")


@pytest.mark.parametrize(
    "name", ["0f3a99c2", "torch@2.1+horovod", "null[lmdb]", "cn-01.cluster:1", "trial-3.2"]
)
def test_ordinary_names_are_taken_as_they_are(name):
    assert path_part(name) == name


def test_a_cells_key_cannot_name_another_folder():
    paths = RunPaths(Path("/runs/one"))
    for forms_a_path in (paths.cell, paths.cold, paths.probe, paths.cache, paths.environment):
        with pytest.raises(DamagedFile):
            forms_a_path("../..")


def test_a_payload_lies_in_the_run_only():
    assert payload_name("payload") == "payload"
    assert payload_name("payload.12") == "payload.12"
    for name in ("payload.x", "../payload", "/tmp", "payload/../..", "payload.2\n", None):
        with pytest.raises(DamagedFile, match="payload"):
            payload_name(name)
