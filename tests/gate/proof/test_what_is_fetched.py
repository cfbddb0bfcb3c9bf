"""A step takes what was fetched, not only what an examination gives it."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from harness.data.create import create
from harness.data.sets import DataSetSpec
from harness.worker import job as jobs
from tests.gate.conftest import Subject, changed, run_in
from tests.gate.proof.conftest import BATCH, job_of
from tests.gate.proof.planted import on_torch
from workloads import tinycnn

pytestmark = [pytest.mark.framework, pytest.mark.planted]

GIVEN = "        for own, tensor in zip(self.batch, (given, target)):\n"
KEPT = "        self.kept = getattr(self, 'kept', self.batch)\n"
FROM_FILES = {"shuffle": "file", "format": "raw", "reader": "threads", "reader_threads": 1}
READ = {**FROM_FILES, "cache": "warm", "prefetch": 1}


def test_a_buffer_that_nothing_fills_is_refused(workers, given, tmp_path, planted) -> None:
    source, activity = tmp_path / "payload", on_torch.FOLDER + "activity.py"
    takes = on_torch.STEP, on_torch.STEP.replace("self.batch", "self.kept")
    gives = GIVEN, KEPT + GIVEN.replace("self.batch", "self.kept")
    changed(source, {activity: [takes, gives]}, tinycnn)
    create(DataSetSpec("tiny-pictures", "raw", 6 * BATCH), tmp_path / "set", doing=lambda _: None)
    job = job_of("torch", tmp_path, given(tinycnn, 1), "fp32", 1, compiled=False)
    paths = {**job.paths, "data": str(tmp_path / "set")}
    job = replace(job, factors={**job.factors, **READ}, paths=paths)
    (tmp_path / "job.json").write_text(jobs.text(job))
    with pytest.raises(AssertionError) as caught:
        run_in(workers, Subject("torch"), source, tmp_path)
    named = re.search("WrongDelivery: (.* what the step takes is another one)", str(caught.value))
    found = named and named[1]
    planted("torch", "a buffer that what is fetched never fills", "what it is fed", found)
    assert found is not None
