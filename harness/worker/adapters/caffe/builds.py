"""Tell which Caffe computes: the program that is timed, and the pycaffe that is examined.

Both are thin: what computes is the ``libcaffe`` that each loads. Two builds may share a version and
nothing else (BVLC's with OpenBLAS or MKL), and Intel's flavour and BVLC's share their interface, so
an examination holds for a program if the library is the same file, or one of the same bytes. Of a
program that is a script, or has its library inside, only the version is known.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence

_LOADED = re.compile(r"^\s*(?:\S+ => )?(/.+) \(0x[0-9a-f]+\)$", re.MULTILINE)
_MAPPED = re.compile(r"^\S+ \S+ \S+ \S+ \S+ +(/.+)$", re.MULTILINE)
_LIBRARY = re.compile(r"^libcaffe[^/]*\.so[.0-9]*$")
_BENEATH = (
    ("blas", "OpenBLAS", re.compile(r"^libopenblas[^/]*?(?:-r(\d[\d.]*\d))?\.so")),
    ("blas", "MKL", re.compile(r"^libmkl_(?:rt|core)\.so(?:\.(\d[\d.]*))?$")),
    ("blas", "MKL-ML", re.compile(r"^libmklml[^/]*\.so(?:\.(\d[\d.]*))?$")),
    ("blas", "ATLAS", re.compile(r"^lib(?:s|t)?atlas\.so(?:\.(\d[\d.]*))?$")),
    ("blas", "BLIS", re.compile(r"^libblis[^/]*\.so(?:\.(\d[\d.]*))?$")),
    ("mkldnn", "MKL-DNN", re.compile(r"^libmkldnn\.so(?:\.(\d[\d.]*))?$")),
)
"""What Caffe computes its products with; the file that a link leads to has the version."""
UNKNOWN = "unknown"


class Build(NamedTuple):
    """A Caffe, as far as it can be told."""

    version: str
    library: Optional[str]
    """The file of its libcaffe; None where that is unknown."""


def program_build(program: str, version: str, env: Mapping[str, str]) -> Build:
    """Describe the program that is timed."""
    return Build(version, _caffe_of(loaded_by(program, env)))


def module_build(caffe: object) -> Build:
    """Describe the pycaffe that this process has imported."""
    version = str(getattr(caffe, "__version__", UNKNOWN))
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as file:
        return Build(version, _caffe_of(sorted(set(_MAPPED.findall(file.read())))))


def loaded_by(program: str, env: Mapping[str, str]) -> List[str]:
    """List the libraries that the dynamic linker would load; none where that is unknown."""
    path, ldd = shutil.which(program, path=env.get("PATH")), shutil.which("ldd")
    if path is None or ldd is None:
        return []
    asked = subprocess.run(
        [ldd, path],
        env=dict(env),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        universal_newlines=True,
        check=False,
    )
    return sorted(map(os.path.realpath, set(_LOADED.findall(asked.stdout))))


def stamp(program: str, env: Mapping[str, str]) -> str:
    """Tell a program and its libcaffe from a rebuilt one, without reading them."""
    path = shutil.which(program, path=env.get("PATH"))
    files = [path, _caffe_of(loaded_by(program, env))]
    told = [(file, os.stat(file)) for file in files if file is not None]
    return "".join("{} {} {}\n".format(file, it.st_size, it.st_mtime_ns) for file, it in told)


def beneath(libraries: Sequence[str]) -> Dict[str, str]:
    """Name what computes the products, with its version where the file's name has it."""
    found: Dict[str, List[str]] = {}
    for path in libraries:
        for kind, title, pattern in _BENEATH:
            match = pattern.match(os.path.basename(path))
            if match is not None:
                found.setdefault(kind, []).append(" ".join(filter(None, (title, match[1]))))
    return {kind: ", ".join(dict.fromkeys(names)) for kind, names in found.items()}


def disagreement(timed: Build, examined: Build) -> Optional[str]:
    """Say why what is examined proves nothing of what is timed; None where it may."""
    if timed.version != examined.version:
        return "it is Caffe {}, and the program that is timed is {}".format(
            examined.version, timed.version
        )
    if timed.library is not None and examined.library is not None:
        if not _is_same(timed.library, examined.library):
            return "it loads {}, and the program that is timed another one, {}".format(
                examined.library, timed.library
            )
    elif timed.version == UNKNOWN:
        return "neither it nor the program that is timed says its version"
    return None


def unshown(timed: Build, examined: Build) -> Optional[str]:
    """Say what is not known though nothing contradicts it; None where the library is one."""
    if timed.library is not None and examined.library is not None:
        return None
    which = "the program" if timed.library is None else "pycaffe"
    return "that the program computes as pycaffe does: which libcaffe {} loads is unknown".format(
        which
    )


def _caffe_of(paths: Sequence[str]) -> Optional[str]:
    return next((path for path in paths if _LIBRARY.match(os.path.basename(path))), None)


def _is_same(one: str, other: str) -> bool:
    return os.path.realpath(one) == os.path.realpath(other) or _digest(one) == _digest(other)


def _digest(path: str) -> bytes:
    whole = hashlib.sha256()
    with open(path, "rb") as file:
        for part in iter(lambda: file.read(1 << 20), b""):
            whole.update(part)
    return whole.digest()
