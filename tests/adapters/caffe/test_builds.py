"""Tell whether the Caffe that is examined is the one that is timed."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.worker.adapters.caffe.builds import Build, beneath, disagreement, unshown


def library(folder: Path, name: str, content: str) -> str:
    path = folder / name / "libcaffe.so.1.0.0"
    path.parent.mkdir()
    path.write_text(content)
    return str(path)


def test_another_version_proves_nothing_of_the_program() -> None:
    why = disagreement(Build("1.1.6", None), Build("1.0.0", None))
    assert why == "it is Caffe 1.0.0, and the program that is timed is 1.1.6"


def test_another_build_of_one_version_proves_nothing_either(tmp_path: Path) -> None:
    mine, other = library(tmp_path, "mine", "openblas"), library(tmp_path, "other", "mkl")
    why = disagreement(Build("1.0.0", mine), Build("1.0.0", other))
    assert why == f"it loads {other}, and the program that is timed another one, {mine}"


def test_a_copy_of_the_library_is_the_library(tmp_path: Path) -> None:
    mine, copy = library(tmp_path, "mine", "openblas"), library(tmp_path, "copy", "openblas")
    both = Build("1.0.0", mine), Build("1.0.0", copy)
    assert disagreement(*both) is None
    assert unshown(*both) is None


@pytest.mark.parametrize("version", ["1.0.0", "unknown"])
def test_where_a_library_is_unknown_the_version_decides_and_that_is_said(version: str) -> None:
    both = Build(version, None), Build(version, "/opt/libcaffe.so")
    assert (disagreement(*both) is None) == (version == "1.0.0")
    assert "which libcaffe the program loads is unknown" in (unshown(*both) or "")


def test_libraries_beneath_are_named_with_the_version_that_their_file_has() -> None:
    files = [
        "/usr/lib/openblas-pthread/libopenblasp-r0.3.21.so",
        "/opt/intel/libmklml_intel.so",
        "/opt/intel/libmkldnn.so.0.18.1",
        "/usr/lib/libm.so.6",
    ]
    assert beneath(files) == {"blas": "OpenBLAS 0.3.21, MKL-ML", "mkldnn": "MKL-DNN 0.18.1"}
