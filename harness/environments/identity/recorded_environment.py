"""Choose what of the host's environment is recorded.

Of most variables only the name is written down, because people put secrets under innocent names.
Those that may explain a result keep their value, unless it is a secret by name (``*_TOKEN``,
``*PASSWORD*`` …) or by shape (well-known prefixes, credentials in addresses, long random words).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from harness.environments.lock import variables_of_locks
from harness.study.recorded_variables import is_telling
from harness.worker.redaction.redact import redact

NOT_RECORDED = "(not recorded)"

# Where programs and libraries come from, what compiles, and what launchers say of the job.
_OF_THE_PLACE = re.compile(
    r"(?:(?:LD_|LIBRARY_|C_INCLUDE_|CPLUS_INCLUDE_)?PATH|CPATH|MODULEPATH|LOADEDMODULES|_LMFILES_|"
    r"PWD|TMPDIR|TZ|LANG|LC_\w+|CC|CXX|(?:C|CXX|CPP|LD)FLAGS|VIRTUAL_ENV|CONDA_PREFIX|"
    r"CONDA_DEFAULT_ENV|(?:APPTAINER|SINGULARITY)_CONTAINER|container)|"
    r"(?:PYTHON|PBS_|LSB_|LSF_|PMIX_|PRTE_|MPICH_|MV2_|HYDRA_|FI_|GLOG_|HDF5_)\w*"
)


def redacted(environ: Mapping[str, str]) -> dict[str, str]:
    """Give a copy that may be published, sorted by name."""
    places = variables_of_locks()
    return {
        name: redact(name, value) if _is_recorded(name, places) else NOT_RECORDED
        for name, value in sorted(environ.items())
        if not name.startswith("BASH_FUNC_")
    }


def _is_recorded(name: str, places: frozenset[str]) -> bool:
    return name in places or is_telling(name) or _OF_THE_PLACE.fullmatch(name) is not None
