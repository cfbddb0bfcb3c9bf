"""What a secret looks like: the names it is given, and the shapes that issuers give it."""

from __future__ import annotations

import math
import re
from collections import Counter

BEGINS = r"(?:\b|(?<=\\[nrt]))"
"""Where a word begins, also after a line's end as JSON writes it."""
SHAPE = re.compile(
    r"gh[pousr]_\w{16,}|github_pat_\w{16,}|gl(?:pat|ptt|dt|rt|cbt)-[\w-]{16,}|"
    r"xox[abeoprs]-[\w-]{10,}|xapp-[\w-]{10,}|hooks\.slack\.com/services/[\w/]+|"
    rf"{BEGINS}sk-[\w-]{{16,}}|{BEGINS}[rps]k_(?:live|test)_\w{{10,}}|whsec_\w{{16,}}|"
    rf"{BEGINS}(?:AKIA|ASIA|AROA|AIDA|AGPA|AIPA|ANPA|ANVA)[0-9A-Z]{{16}}|AIza[\w-]{{30,}}|"
    rf"ya29\.[\w-]{{16,}}|GOCSPX-[\w-]{{16,}}|{BEGINS}hf_\w{{16,}}|{BEGINS}npm_\w{{16,}}|"
    r"pypi-[\w-]{16,}|dckr_pat_[\w-]{16,}|dop_v1_\w{16,}|shp(?:at|ca|pa|ss)_\w{16,}|"
    rf"{BEGINS}dapi[0-9a-f]{{32}}|{BEGINS}SG\.[\w-]{{10,}}\.[\w-]{{10,}}|{BEGINS}nvapi-[\w-]{{16,}}|"
    rf"{BEGINS}glsa_\w{{16,}}|{BEGINS}(?:hv[sb]|s)\.[\w-]{{24,}}|"
    rf"(?:(?<![\w-])|(?<=\\[nrt]))eyJ[\w-]{{8,}}\.[\w-]{{8,}}(?:\.[\w-]*)?|"
    r"-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----"
    r"(?:(?:\\+[nr]|\s)*(?:[A-Z][A-Za-z-]+: [^\n\\]*|[A-Za-z0-9+/]{16,}={0,2}))*"
    r"(?:(?:\\+[nr]|\s)*[A-Za-z0-9+/]{1,15}(?:={1,2}|(?=(?:\\+[nr]|\s)*-----END)))?"
    r"(?:(?:\\+[nr]|\s)*-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----)?|"
    rf"{BEGINS}(?:Bearer|Negotiate) [\w.~+/=-]{{8,}}",
)
"""Strings that are secrets wherever they stand."""
OF_SHAPES = (
    *("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "glptt-", "gldt-", "glrt-"),
    *("glcbt-", "xox", "xapp-", "hooks.slack.com", "sk-", "k_live_", "k_test_", "whsec_", "AKIA"),
    *("ASIA", "AROA", "AIDA", "AGPA", "AIPA", "ANPA", "ANVA", "AIza", "ya29.", "GOCSPX-", "hf_"),
    *("npm_", "pypi-", "dckr_pat_", "dop_v1_", "shp", "dapi", "SG.", "nvapi-", "glsa_", "hvs."),
    *("hvb.", "s.", "eyJ", "-----BEGIN", "Bearer ", "Negotiate "),
)
"""One of these stands in each of them: to look for words is 20 times faster than for shapes."""

SECRET_VARIABLE = re.compile(
    r"TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|(?:CREDS?|KEYS?|PWD?|PASS)(?:$|_)|"
    r"(?:^|_)(?:PAT|AUTH|JWT|DSN|COOKIE|SESSION|SIGNATURE|SIG|BEARER|PRIVATE|LICENSE|LICENCE)(?:$|_)",
    re.IGNORECASE,
)
_OF_A_FIELD = re.compile(
    r"(?<!CHARS_)TOKEN(?!S|I[SZ]|_?(?:ID|COUNT|LEN|TYPE))|SECRET|PASSW(?:OR)?D|PASSPHRASE|CREDENTIALS?$|"
    r"(?:API|ACCESS|ACCOUNT|PRIVATE|SIGNING|ENCRYPTION|MASTER|AUTH|XLA)_?(?:KEY|PASS)|"
    r"(?:^|_)(?:PWD?|PASS|CREDS?|AUTH|JWT|COOKIE|SIG|SIGNATURE|BEARER|DSN|AUTHORIZATION)$|CREDS$",
    re.IGNORECASE,
)
OF_NAMES = (
    *("token", "secret", "pass", "pw", "key", "cred", "auth", "jwt", "dsn", "cookie", "session"),
    *("sig", "bearer", "private", "licen", "pat"),
)
"""One of these stands in each name of a secret, in small letters."""
_NO_SECRETS = frozenset({"PWD", "OLDPWD"})


def is_secret_variable(name: str) -> bool:
    """Tell whether a variable of this name holds a secret; when in doubt, it does."""
    return name not in _NO_SECRETS and SECRET_VARIABLE.search(name) is not None


def is_secret_field(name: str) -> bool:
    """Tell whether a field of this name holds one, in text where `key` and `session` are words."""
    plain = name.strip("-.").replace("-", "_")
    if plain.isupper() and "_" in plain:
        return is_secret_variable(plain)
    return plain not in _NO_SECRETS and _OF_A_FIELD.search(plain) is not None


def is_random(word: str) -> bool:
    """Tell a random key from a name: digits among letters, no character much more frequent."""
    if not any(one.isdigit() for one in word) or not any(one.isalpha() for one in word):
        return False
    if re.fullmatch(r"[0-9a-fA-F]{32,}", word):
        return True
    counts = Counter(word)
    entropy = -sum(n / len(word) * math.log2(n / len(word)) for n in counts.values())
    mixed = any(one.islower() for one in word) and any(one.isupper() for one in word)
    return mixed and entropy > 3.7
