"""Remove secrets from an environment before it is stored.

Of most variables only the name is written down, because people put secrets under innocent names.
Those that may explain a result keep their value, unless it is a secret by name (``*_TOKEN``,
``*PASSWORD*`` …) or by shape (well-known prefixes, credentials in addresses, long random words).
When in doubt, out: a hidden harmless value costs nothing.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping

from harness.environments.lock import variables_of_locks
from harness.study.recorded_variables import is_telling

HIDDEN = "(redacted)"
NOT_RECORDED = "(not recorded)"

# Where programs and libraries come from, what compiles, and what launchers say of the job.
_OF_THE_PLACE = re.compile(
    r"(?:(?:LD_|LIBRARY_|C_INCLUDE_|CPLUS_INCLUDE_)?PATH|CPATH|MODULEPATH|LOADEDMODULES|_LMFILES_|"
    r"PWD|TMPDIR|TZ|LANG|LC_\w+|CC|CXX|(?:C|CXX|CPP|LD)FLAGS|VIRTUAL_ENV|CONDA_PREFIX|"
    r"CONDA_DEFAULT_ENV|(?:APPTAINER|SINGULARITY)_CONTAINER|container)|"
    r"(?:PYTHON|PBS_|LSB_|LSF_|PMIX_|PRTE_|MPICH_|MV2_|HYDRA_|FI_|GLOG_|HDF5_)\w*"
)

_SECRET_NAME = re.compile(
    r"TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|(?:CREDS?|KEYS?|PWD?|PASS)(?:$|_)|"
    r"(?:^|_)(?:PAT|AUTH|JWT|DSN|COOKIE|SESSION|SIGNATURE|SIG|BEARER|PRIVATE|LICENSE|LICENCE)(?:$|_)",
    re.IGNORECASE,
)
_NOT_SECRET = frozenset({"PWD", "OLDPWD"})
_SECRET_SHAPE = re.compile(
    r"gh[pousr]_\w{16,}|github_pat_\w{16,}|glpat-[\w-]{16,}|xox[abeprs]-[\w-]{10,}|sk-[\w-]{16,}|"
    r"(?:AKIA|ASIA)[0-9A-Z]{16}|AIza[\w-]{30,}|ya29\.[\w-]{16,}|hf_\w{16,}|npm_\w{16,}|"
    r"pypi-[\w-]{16,}|dckr_pat_[\w-]{16,}|eyJ[\w-]{8,}\.[\w-]{8,}|-----BEGIN [A-Z ]*PRIVATE KEY|"
    r"\bBearer \S{8,}",
)
_IN_ADDRESS = re.compile(r"(?<=://)[^/\s@]+(?=@)")
_ASSIGNED = re.compile(r"""([\w-]+)(\s*[=:]\s*)("[^"]*"|'[^']*'|[^\s&;,"']+)""")
_OPTION = re.compile(r"""(?<!\S)--?([\w-]+)(\s+)("[^"]*"|'[^']*'|[^\s"'-]\S*)""")
_WORD = re.compile(r"[A-Za-z0-9+=_-]{24,}")
_LONGEST = 2000


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


def redact(name: str, value: str) -> str:
    """Hide a value, or the part of it that looks like a secret."""
    if not value:
        return value
    if name not in _NOT_SECRET and _SECRET_NAME.search(name):
        return HIDDEN
    if _SECRET_SHAPE.search(value) or any(map(_is_random, _WORD.findall(value))):
        return HIDDEN
    value = _IN_ADDRESS.sub(HIDDEN, value)
    for pair in (_ASSIGNED, _OPTION):
        value = _without_secrets(pair, value)
    return value if len(value) <= _LONGEST else f"{value[:_LONGEST]} … ({len(value)} characters)"


def _without_secrets(pair: re.Pattern[str], value: str) -> str:
    """Hide secrets inside a longer value, by the names that they are assigned to."""
    position = 0
    while (found := pair.search(value, position)) is not None:
        position = found.start(3)
        if _SECRET_NAME.search(found[1].strip("-").replace("-", "_")):
            value = value[:position] + HIDDEN + value[found.end(3) :]
            position += len(HIDDEN)
    return value


def _is_random(word: str) -> bool:
    """Tell a random key from a name: digits among letters, no character much more frequent."""
    if not any(one.isdigit() for one in word) or not any(one.isalpha() for one in word):
        return False
    if re.fullmatch(r"[0-9a-fA-F]{32,}", word):
        return True
    counts = Counter(word)
    entropy = -sum(n / len(word) * math.log2(n / len(word)) for n in counts.values())
    mixed = any(one.islower() for one in word) and any(one.isupper() for one in word)
    return mixed and entropy > 3.7
